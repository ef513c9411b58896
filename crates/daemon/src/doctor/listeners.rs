//! Whether the daemon could listen where it is asked to.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use quintet_dialects::transport::access::peer;
use quintet_dialects::transport::uds::connect;
use rustix::fs::{Access, access};

use super::{Finding, Health};
use crate::options::{Auth, Listener, Place};

/// A line for each, with who may connect there; `runs` says whether a daemon has the data already, and so
/// probably the places.
pub(super) fn look(listeners: &[Listener], auth: &Auth, runs: bool) -> Vec<Finding> {
    let with_access = |listener: &Listener| {
        let finding = place(listener, runs);
        let what = format!("{}; {}", finding.what, who(listener, auth));
        Finding { what, ..finding }
    };
    listeners.iter().map(with_access).chain(peers(auth)).collect()
}

/// A sentence for the user: which peers may connect to a listener.
fn who(listener: &Listener, auth: &Auth) -> String {
    let pages = match &auth.origins[..] {
        [] => String::new(),
        origins => format!(", pages of {}", origins.join(", ")),
    };
    match (&listener.place, &auth.token) {
        (Place::Unix(_), _) => "for this user alone".into(),
        (Place::Tcp(_), None) => format!("for this user alone{pages}"),
        (Place::Tcp(_), Some(_)) => format!("for whoever brings auth.token{pages}"),
    }
}

/// Whether the kernel says whose a connection is.
fn peers(auth: &Auth) -> Option<Finding> {
    let error = peer::can_be_told().err()?;
    let what = format!("whose connections are cannot be told: {error}");
    Some(match auth.token {
        Some(_) => Finding::well("access", format!("{what}; auth.token is asked for instead")),
        None => Finding::ill("access", what, "set auth.token: nobody is answered without it"),
    })
}

fn place(listener: &Listener, runs: bool) -> Finding {
    let name = listener.spec.name;
    let mut finding = match &listener.place {
        Place::Tcp(address) => port(name, *address, runs),
        Place::Unix(path) => socket(name, path, runs),
    };
    // The daemon starts without a listener that the user did not ask for.
    if finding.health == Health::Ill && !listener.is_required() {
        finding.health = Health::Poor;
    }
    finding
}

fn port(name: &'static str, address: SocketAddr, runs: bool) -> Finding {
    let exposed = !address.ip().is_loopback();
    match TcpListener::bind(address) {
        Ok(_) if exposed => Finding::poor(
            name,
            format!("{address} can be reached from other machines"),
            "listen on 127.0.0.1, or let them come through a proxy with TLS: the token is sent as it is",
        ),
        Ok(_) => Finding::well(name, format!("{address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && runs => taken(name, &address),
        Err(error) => elsewhere(name, format!("{address}: {error}"), "address"),
    }
}

/// A socket that nobody answers at was left behind, and is replaced.
fn socket(name: &'static str, path: &Path, runs: bool) -> Finding {
    let (shown, folder) = (path.display(), path.parent().unwrap_or(Path::new("/")));
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            elsewhere(name, format!("{shown} is there and is no socket"), "path")
        }
        Ok(_) if connect(path).is_ok() && runs => taken(name, &shown),
        Ok(_) if connect(path).is_ok() => {
            elsewhere(name, format!("somebody else answers at {shown}"), "path")
        }
        Ok(_) | Err(_) if !folder.exists() => Finding::well(name, format!("{shown} will be made")),
        Ok(_) | Err(_) if access(folder, Access::WRITE_OK).is_err() => {
            elsewhere(name, format!("{shown}: nothing can be made in its folder"), "path")
        }
        Ok(_) | Err(_) => Finding::well(name, format!("{shown} is free")),
    }
}

fn taken(name: &'static str, place: &dyn std::fmt::Display) -> Finding {
    Finding::well(name, format!("{place} is taken, probably by the daemon that runs"))
}

fn elsewhere(name: &'static str, what: String, place: &str) -> Finding {
    Finding::ill(name, what, format!("set listen.{name} to another {place}, or \"off\""))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use quintet_dialects::DIALECTS;

    use super::*;

    #[track_caller]
    fn check(path: &Path, [chosen, runs]: [bool; 2], health: Health, what: &str) {
        let place = Place::Unix(path.to_owned());
        let mut specs = DIALECTS.iter().flat_map(|dialect| dialect.listeners);
        let spec = specs.find(|spec| !spec.required).expect("an optional listener");
        let listener = Listener { spec, place, chosen };
        let auth = Auth { token: None, origins: Vec::new() };
        let found = look(&[listener], &auth, runs);
        assert!(found.len() == 1 && found[0].about == spec.name);
        assert_eq!(found[0].health, health, "{found:?}");
        assert!(found[0].what.contains(what), "{found:?}");
        assert!(found[0].what.ends_with("; for this user alone"), "{found:?}");
        assert_eq!(found[0].mend.is_some(), health != Health::Well, "{found:?}");
    }

    #[test]
    fn a_socket_is_free_or_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.sock");
        check(&path, [true, false], Health::Well, "is free");
        check(&dir.path().join("new/q.sock"), [true, false], Health::Well, "will be made");
        let listener = UnixListener::bind(&path).unwrap();
        check(&path, [true, true], Health::Well, "is taken, probably by the daemon that runs");
        check(&path, [true, false], Health::Ill, "somebody else answers");
        check(&path, [false, false], Health::Poor, "somebody else answers");
        drop(listener);
        check(&path, [true, false], Health::Well, "is free");
        fs::remove_file(&path).unwrap();
        fs::write(&path, "").unwrap();
        check(&path, [true, true], Health::Ill, "is no socket");
    }
}
