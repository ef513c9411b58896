//! Parses a connection URL and decides on encryption.

use std::path::PathBuf;
use std::time::Duration;

use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How long sent data may stay unacknowledged before a connection counts as dead.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(10);

/// How to connect.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    /// Where the server is, without a password.
    pub(super) server: String,
}

/// The encryption that the URL requests.
enum Tls {
    Unsaid,
    Off,
    /// Encrypted, and the server's certificate is verified.
    Checked,
}

impl Target {
    /// Parses a URL. Without `sslmode`, connections to this machine are not encrypted, and
    /// connections to others need a certificate that is verified by the system's roots or those of
    /// `sslrootcert`.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let (mut tls, mut roots, mut rest) = (Tls::Unsaid, None, Vec::new());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = form_urlencoded::parse(pair.as_bytes()).next().unwrap_or_default();
            match (&*key, &*value) {
                ("sslmode", "disable") => tls = Tls::Off,
                ("sslmode", "require" | "verify-full") => tls = Tls::Checked,
                ("sslmode", other) => {
                    return Err(format!(
                        "sslmode={other} is not supported: use disable, require or verify-full"
                    ));
                }
                ("sslrootcert", file) => roots = Some(PathBuf::from(file)),
                _ => rest.push(pair),
            }
        }
        let query = if rest.is_empty() { String::new() } else { format!("?{}", rest.join("&")) };
        let mut config: Config =
            format!("{base}{query}").parse().map_err(|error| format!("the URL: {error}"))?;
        let checked = match tls {
            Tls::Unsaid => !is_local(&config),
            Tls::Off => false,
            Tls::Checked => true,
        };
        config.ssl_mode(if checked { SslMode::Require } else { SslMode::Disable });
        config.connect_timeout(CONNECT_TIMEOUT).keepalives_idle(KEEPALIVE_INTERVAL);
        config.tcp_user_timeout(UNACKNOWLEDGED_TIMEOUT).application_name("quintet");
        let roots = if checked { trusted(roots)? } else { RootCertStore::empty() };
        let server = server(&config);
        Ok(Self { config, tls: connector(roots)?, server })
    }
}

/// True if every host is this machine.
fn is_local(config: &Config) -> bool {
    config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => matches!(name.as_str(), "localhost" | "127.0.0.1" | "::1"),
        Host::Unix(_) => true,
    })
}

/// The hosts and the database, for messages.
fn server(config: &Config) -> String {
    let ports = config.get_ports();
    let host = |(number, host): (usize, &Host)| {
        let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    };
    let hosts: Vec<String> = config.get_hosts().iter().enumerate().map(host).collect();
    format!("postgres://{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

/// The certificates of a file, or the system's.
fn trusted(file: Option<PathBuf>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let unreadable = |error| format!("sslrootcert {}: {error}", file.display());
            for root in CertificateDer::pem_file_iter(&file).map_err(unreadable)? {
                roots.add(root.map_err(unreadable)?).map_err(|error| error.to_string())?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(roots)
}

fn connector(roots: RootCertStore) -> Result<MakeRustlsConnect, String> {
    let config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, then: Result<(SslMode, &str), &str>) {
        let read = Target::parse(url).map(|to| (to.config.get_ssl_mode(), to.server));
        let read = read.as_ref().map(|(mode, server)| (*mode, server.as_str()));
        assert_eq!(read.map_err(String::as_str), then, "{url}");
    }

    #[test]
    fn connections_to_other_machines_are_encrypted() {
        check("postgres://me:secret@db/q", Ok((SslMode::Require, "postgres://db:5432/q")));
        check("postgres://me@db:1/q?sslmode=disable", Ok((SslMode::Disable, "postgres://db:1/q")));
        check("postgres://127.0.0.1/q", Ok((SslMode::Disable, "postgres://127.0.0.1:5432/q")));
        check(
            "postgres://localhost/q?sslmode=verify-full&target_session_attrs=read-write",
            Ok((SslMode::Require, "postgres://localhost:5432/q")),
        );
        check(
            "postgres://me@/q?host=/run/postgresql",
            Ok((SslMode::Disable, "postgres:///run/postgresql:5432/q")),
        );
        check(
            "postgres://db/q?sslmode=prefer",
            Err("sslmode=prefer is not supported: use disable, require or verify-full"),
        );
    }
}
