//! Inspects a database without joining it, to report whether a daemon could use it.

use super::connection::Connection;
use super::migrate::NEWEST;
use super::reason;
use super::url::Target;
use crate::Error;

/// A database as a daemon would find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Where the server is, without a password.
    pub server: String,
    /// The server's version.
    pub version: String,
    /// The version of the tables; 0 if there are none yet.
    pub schema: usize,
}

impl Probe {
    /// True if the tables are of a newer version than this program knows.
    pub fn is_too_new(&self) -> bool {
        self.schema > NEWEST
    }
}

/// Connects without changing anything.
///
/// # Errors
/// Fails if the URL is not valid or the server cannot be reached.
pub async fn probe(url: &str) -> Result<Probe, Error> {
    let unknown = |reason| Error::Server { server: "store.url".into(), reason };
    let target = Target::parse(url).map_err(unknown)?;
    let failed = |error: tokio_postgres::Error| Error::Server {
        server: target.server.clone(),
        reason: reason(&error),
    };
    let runtime = tokio::runtime::Handle::current();
    let db = Connection::open(&target, &runtime).await.map_err(failed)?;
    let version = db.row("SELECT current_setting('server_version')", &[]).await.map_err(failed)?;
    let version = version.map_or_else(String::new, |row| row.get(0));
    let has_tables = db.row("SELECT to_regclass('quintet_meta') IS NOT NULL", &[]).await;
    let schema = if has_tables.map_err(failed)?.is_some_and(|row| row.get(0)) {
        let query = "SELECT value FROM quintet_meta WHERE key = 'schema_version'";
        let row = db.row(query, &[]).await.map_err(failed)?;
        row.and_then(|row| row.get::<_, String>(0).parse().ok()).unwrap_or(0)
    } else {
        0
    };
    Ok(Probe { server: target.server, version, schema })
}
