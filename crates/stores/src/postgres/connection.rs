//! Connections: one that caches its statements, and a few that reads share.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use quintet_kernel::port::{BoxFuture, StorageError};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::trouble;
use super::url::Target;
use crate::lock;

/// Maximum number of concurrent reads.
const READERS: usize = 6;

/// The parameters of a statement.
pub(super) type Values<'a> = &'a [&'a (dyn ToSql + Sync)];

/// A connection and its prepared statements.
pub(super) struct Connection {
    client: Client,
    statements: Mutex<HashMap<String, Statement>>,
}

impl Connection {
    /// Connects; a task of the runtime drives the connection.
    pub(super) async fn open(to: &Target, runtime: &Handle) -> Result<Self, Error> {
        let (client, traffic) = to.config.connect(to.tls.clone()).await?;
        // Ends when the client is dropped or the server disconnects, which queries then report.
        runtime.spawn(traffic);
        Ok(Self::new(client))
    }

    pub(super) fn new(client: Client) -> Self {
        Self { client, statements: Mutex::default() }
    }

    pub(super) async fn prepared(&self, sql: &str) -> Result<Statement, Error> {
        if let Some(known) = lock(&self.statements).get(sql) {
            return Ok(known.clone());
        }
        let statement = self.client.prepare(sql).await?;
        lock(&self.statements).insert(sql.into(), statement.clone());
        Ok(statement)
    }

    pub(super) async fn rows(&self, sql: &str, values: Values<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.prepared(sql).await?;
        self.client.query(&statement, values).await
    }

    pub(super) async fn row(&self, sql: &str, values: Values<'_>) -> Result<Option<Row>, Error> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// Returns the number of changed rows.
    pub(super) async fn execute(&self, sql: &str, values: Values<'_>) -> Result<u64, Error> {
        let statement = self.prepared(sql).await?;
        self.client.execute(&statement, values).await
    }

    /// Runs statements without parameters.
    pub(super) async fn batch(&self, sql: &str) -> Result<(), Error> {
        self.client.batch_execute(sql).await
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }
}

/// Connections for everything that need not be ordered with appends.
pub(super) struct Pool {
    target: Target,
    runtime: Handle,
    permits: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl Pool {
    pub(super) fn new(target: Target, runtime: Handle) -> Self {
        let (permits, idle) = (Semaphore::new(READERS), Mutex::default());
        Self { target, runtime, permits, idle }
    }

    /// Runs work with a connection, in a task of the store, so that a caller that does not poll its
    /// future blocks no connection.
    pub(super) fn run<T, F>(
        self: &Arc<Self>,
        work: impl FnOnce(Lent) -> F + Send + 'static,
    ) -> BoxFuture<'static, Result<T, StorageError>>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StorageError>> + Send + 'static,
    {
        let pool = Arc::clone(self);
        Box::pin(async move {
            let runtime = pool.runtime.clone();
            let task = runtime.spawn(async move {
                let _permit = pool.permits.acquire().await.map_err(|_| closed())?;
                let connection = pool.connection().await.map_err(trouble)?;
                let lent = Lent { connection: Some(connection), pool: Arc::clone(&pool) };
                work(lent).await
            });
            task.await.unwrap_or_else(|_| Err(closed()))
        })
    }

    async fn connection(&self) -> Result<Connection, Error> {
        let idle = || lock(&self.idle).pop();
        while let Some(connection) = idle() {
            if !connection.is_closed() {
                return Ok(connection);
            }
        }
        Connection::open(&self.target, &self.runtime).await
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("server", &self.target.server).finish_non_exhaustive()
    }
}

/// A connection of the pool, returned to it when dropped.
pub(super) struct Lent {
    connection: Option<Connection>,
    pool: Arc<Pool>,
}

impl Deref for Lent {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection.as_ref().expect("lent until it is dropped")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let whole = !std::thread::panicking();
        if let Some(connection) = self.connection.take().filter(|one| whole && !one.is_closed()) {
            lock(&self.pool.idle).push(connection);
        }
    }
}

fn closed() -> StorageError {
    StorageError::Unavailable("the store is closed".into())
}
