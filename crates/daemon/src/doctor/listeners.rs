//! Checks whether the daemon can bind its listeners.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use quintet_dialects::transport::access::peer;
use quintet_dialects::transport::uds::connect;
use quintet_kernel::port::{Finding, Severity};
use rustix::fs::{Access, access};

use crate::options::{Auth, ListenAddress, Listener};

/// A finding for each listener, with the peers that may connect; `runs` is true if a daemon is
/// running, which then probably uses the addresses.
pub(super) fn check(listeners: &[Listener], auth: &Auth, runs: bool) -> Vec<Finding> {
    let with_access = |listener: &Listener| {
        let finding = check_listener(listener, runs);
        let message = format!("{}; {}", finding.message, allowed_peers(listener, auth));
        Finding { message, ..finding }
    };
    listeners.iter().map(with_access).chain(peers(auth)).collect()
}

/// A sentence for the user: which peers may connect to a listener.
fn allowed_peers(listener: &Listener, auth: &Auth) -> String {
    let pages = match &auth.origins[..] {
        [] => String::new(),
        origins => format!(", pages of {}", origins.join(", ")),
    };
    match (&listener.place, &auth.token) {
        (ListenAddress::Unix(_), _) => "for this user alone".into(),
        (ListenAddress::Tcp(_), None) => format!("for this user alone{pages}"),
        (ListenAddress::Tcp(_), Some(_)) => format!("for clients with auth.token{pages}"),
    }
}

/// Checks whether the owner of a connection can be determined.
fn peers(auth: &Auth) -> Option<Finding> {
    let error = peer::can_identify_peers().err()?;
    let message = format!("the owners of connections cannot be identified: {error}");
    Some(match auth.token {
        Some(_) => Finding::ok("access", format!("{message}; auth.token is required instead")),
        None => Finding::error(
            "access",
            message,
            "set auth.token: without it every connection is refused",
        ),
    })
}

fn check_listener(listener: &Listener, runs: bool) -> Finding {
    let name = listener.spec.name;
    let mut finding = match &listener.place {
        ListenAddress::Tcp(address) => port(name, *address, runs),
        ListenAddress::Unix(path) => socket(name, path, runs),
    };
    // The daemon starts without a listener that the user did not configure.
    if finding.severity == Severity::Error && !listener.is_required() {
        finding.severity = Severity::Warning;
    }
    finding
}

fn port(name: &'static str, address: SocketAddr, runs: bool) -> Finding {
    let exposed = !address.ip().is_loopback();
    match TcpListener::bind(address) {
        Ok(_) if exposed => Finding::warning(
            name,
            format!("{address} can be reached from other machines"),
            "listen on 127.0.0.1, or put a TLS proxy in front: the token is sent unencrypted",
        ),
        Ok(_) => Finding::ok(name, format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && runs => {
            taken_finding(name, &address)
        }
        Err(error) => unusable(name, format!("{address}: {error}"), "address"),
    }
}

/// Checks a Unix socket. A socket on which no process answers was left behind and is replaced.
fn socket(name: &'static str, path: &Path, runs: bool) -> Finding {
    let (shown, folder) = (path.display(), path.parent().unwrap_or(Path::new("/")));
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            unusable(name, format!("{shown} exists and is not a socket"), "path")
        }
        Ok(_) if connect(path).is_ok() && runs => taken_finding(name, &shown),
        Ok(_) if connect(path).is_ok() => {
            unusable(name, format!("another program answers at {shown}"), "path")
        }
        Ok(_) | Err(_) if !folder.exists() => Finding::ok(name, format!("{shown} will be created")),
        Ok(_) | Err(_) if access(folder, Access::WRITE_OK).is_err() => {
            unusable(name, format!("{shown}: its folder is not writable"), "path")
        }
        Ok(_) | Err(_) => Finding::ok(name, format!("{shown} is free")),
    }
}

fn taken_finding(name: &'static str, place: &dyn std::fmt::Display) -> Finding {
    Finding::ok(name, format!("{place} is in use, probably by the running daemon"))
}

fn unusable(name: &'static str, message: String, place: &str) -> Finding {
    Finding::error(name, message, format!("set listen.{name} to another {place}, or \"off\""))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use quintet_dialects::DIALECTS;

    use super::*;

    #[track_caller]
    fn check_socket(path: &Path, [chosen, runs]: [bool; 2], severity: Severity, message: &str) {
        let place = ListenAddress::Unix(path.to_owned());
        let mut specs = DIALECTS.iter().flat_map(|dialect| dialect.listeners);
        let spec = specs.find(|spec| !spec.required).expect("an optional listener");
        let listener = Listener { spec, place, chosen };
        let auth = Auth { token: None, origins: Vec::new() };
        let found = check(&[listener], &auth, runs);
        assert!(found.len() == 1 && found[0].about == spec.name);
        assert_eq!(found[0].severity, severity, "{found:?}");
        assert!(found[0].message.contains(message), "{found:?}");
        assert!(found[0].message.ends_with("; for this user alone"), "{found:?}");
        assert_eq!(found[0].remedy.is_some(), severity != Severity::Ok, "{found:?}");
    }

    #[test]
    fn a_socket_is_free_or_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.sock");
        check_socket(&path, [true, false], Severity::Ok, "is free");
        check_socket(
            &dir.path().join("new/q.sock"),
            [true, false],
            Severity::Ok,
            "will be created",
        );
        let listener = UnixListener::bind(&path).unwrap();
        check_socket(
            &path,
            [true, true],
            Severity::Ok,
            "is in use, probably by the running daemon",
        );
        check_socket(&path, [true, false], Severity::Error, "another program answers");
        check_socket(&path, [false, false], Severity::Warning, "another program answers");
        drop(listener);
        check_socket(&path, [true, false], Severity::Ok, "is free");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        check_socket(&path, [true, true], Severity::Error, "is not a socket");
    }
}
