//! A PostgreSQL server with TLS and its own certificate.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Server, command, give, path};

/// A server that listens on `localhost` and has a certificate for that name.
#[derive(Debug)]
pub struct TlsServer {
    server: Server,
}

impl TlsServer {
    /// Starts a server; dropping it stops the server.
    ///
    /// # Panics
    /// If PostgreSQL or openssl is not installed or does not start.
    pub fn start() -> Self {
        let (dir, user) = Server::folder();
        for authority in ["authority", "stranger"] {
            make_authority(&dir, authority);
        }
        make_certificate(&dir);
        for file in ["server.key", "server.pem"] {
            give(user, &dir.join(file));
        }
        let key = format!("ssl_key_file={}", path(&dir.join("server.key")));
        let certificate = format!("ssl_cert_file={}", path(&dir.join("server.pem")));
        let settings = ["listen_addresses=localhost", &key, &certificate];
        let server = Self { server: Server::launch(dir, user, free_port(), &settings) };
        server.speak_tls("on");
        server
    }

    /// Enables TLS for new connections (`on`), or disables it (`off`).
    pub fn speak_tls(&self, setting: &str) {
        self.server.run(&format!("ALTER SYSTEM SET ssl = {setting}"));
        self.server.run("SELECT pg_reload_conf()");
        while self.server.run("SHOW ssl") != setting {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A URL over TCP.
    pub fn url(&self, host: &str, query: &str) -> String {
        format!("postgres://quintet@{host}:{}/postgres?{query}", self.server.port)
    }

    /// The certificate of the authority that signed the server's.
    pub fn root(&self) -> PathBuf {
        self.server.dir.join("authority.pem")
    }

    /// The certificate of another authority.
    pub fn other_root(&self) -> PathBuf {
        self.server.dir.join("stranger.pem")
    }

    /// Runs SQL; returns the rows as `psql -At` prints them.
    pub fn run(&self, sql: &str) -> String {
        self.server.run(sql)
    }
}

/// An unused port of this machine.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

const NEW_KEY: [&str; 6] =
    ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"];

fn make_authority(dir: &Path, name: &str) {
    let (key, certificate) = (format!("{name}.key"), format!("{name}.pem"));
    let (subject, files) = (format!("/CN={name}"), [key.as_str(), "-out", &certificate]);
    openssl(
        dir,
        &[&["req", "-x509", "-days", "2", "-subj", &subject], &NEW_KEY[..], &files].concat(),
    );
}

fn make_certificate(dir: &Path) {
    fs::write(dir.join("names"), "subjectAltName=DNS:localhost").expect("a file");
    let files = ["server.key", "-out", "server.csr"];
    openssl(dir, &[&["req", "-subj", "/CN=localhost"], &NEW_KEY[..], &files].concat());
    let signed_by = ["-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial"];
    let files = ["-in", "server.csr", "-extfile", "names", "-out", "server.pem"];
    openssl(dir, &[&["x509", "-req", "-days", "2"], &signed_by[..], &files].concat());
}

fn openssl(dir: &Path, arguments: &[&str]) {
    let done = command("openssl").args(arguments).current_dir(dir).output();
    let done = done.expect("these tests need Debian's package openssl");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "openssl {arguments:?}: {said}");
}
