//! Opens the store of sessions: SQLite in the data directory, or a PostgreSQL database that several daemons
//! share.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use quintet_kernel::port::{
    Artifacts, Blobs, BoxFuture, Drafts, Installs, Journal, Leases, Nodes, Preferences, RunJournal,
    SessionIndex, StorageError, StorageHealth, Uploads,
};
use quintet_stores::{DataDir, NoDrafts, SingleNode, postgres, sqlite};

use crate::options::Options;

/// How long unreferenced content is kept in PostgreSQL.
const BLOB_GRACE: Duration = Duration::from_secs(24 * 3600);

/// All storage ports, whatever implements them.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) leases: Arc<dyn Leases>,
    pub(crate) sessions: Arc<dyn SessionIndex>,
    pub(crate) drafts: Arc<dyn Drafts>,
    pub(crate) blobs: Arc<dyn Blobs>,
    pub(crate) installs: Arc<dyn Installs>,
    pub(crate) preferences: Arc<dyn Preferences>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) uploads: Arc<dyn Uploads>,
    pub(crate) runs: Arc<dyn RunJournal>,
    pub(crate) health: Arc<dyn StorageHealth>,
    pub(crate) nodes: Arc<dyn Nodes>,
    engine: Engine,
}

/// The implementation, for operations that only one of them supports.
#[derive(Clone)]
enum Engine {
    Sqlite(Arc<sqlite::SqliteStore>),
    Postgres(Arc<postgres::Store>),
}

impl Storage {
    /// Opens the store of the options. Files of this machine stay in the data directory in any
    /// case.
    pub(crate) fn open(options: &Options, dir: &DataDir) -> Result<Self> {
        let storage = match &options.store {
            Some(url) => Self::postgres(postgres::Store::open(&postgres_settings(options, url))?),
            None => Self::sqlite(options, dir)?,
        };
        tracing::info!(node = storage.nodes.this().name, "opened the store");
        Ok(storage)
    }

    /// Opens the store for a command that owns no session. With PostgreSQL, daemons may run
    /// meanwhile; with SQLite, the daemon must be stopped.
    pub(crate) fn open_for_command(options: &Options) -> Result<Self> {
        match &options.store {
            Some(url) => {
                Ok(Self::postgres(postgres::Store::observe(url, options.objects.clone())?))
            }
            None => Self::sqlite(options, &DataDir::open(&options.data_dir)?),
        }
    }

    fn sqlite(options: &Options, dir: &DataDir) -> Result<Self> {
        let store = Arc::new(dir.sqlite()?);
        let node = SingleNode::new(options.node.address.clone(), store.clone());
        Ok(Self {
            journal: store.clone(),
            leases: store.clone(),
            sessions: store.clone(),
            drafts: Arc::new(dir.drafts(options.runtime_dir.as_deref())?),
            blobs: Arc::new(dir.blobs()?),
            installs: store.clone(),
            preferences: store.clone(),
            artifacts: store.clone(),
            uploads: Arc::new(dir.uploads()?),
            runs: store.clone(),
            health: store.clone(),
            nodes: Arc::new(node),
            engine: Engine::Sqlite(store),
        })
    }

    fn postgres(store: postgres::Store) -> Self {
        let store = Arc::new(store);
        Self {
            journal: store.clone(),
            leases: store.clone(),
            sessions: store.clone(),
            drafts: Arc::new(NoDrafts),
            blobs: store.clone(),
            installs: store.clone(),
            preferences: store.clone(),
            artifacts: store.clone(),
            uploads: store.clone(),
            runs: store.clone(),
            health: store.clone(),
            nodes: store.clone(),
            engine: Engine::Postgres(store),
        }
    }

    /// Resolves with the reason when the store can never be written again.
    pub(crate) fn ended(&self) -> BoxFuture<'static, String> {
        match &self.engine {
            Engine::Sqlite(store) => {
                let ended = store.writer_ended();
                Box::pin(async move {
                    ended.await;
                    "the thread that writes the database has ended: nothing can be stored".into()
                })
            }
            Engine::Postgres(store) => Box::pin(store.ended()),
        }
    }

    /// Erases replaced values from the database's files, if they belong to this daemon.
    pub(crate) async fn vacuum(&self) -> Result<(), StorageError> {
        match &self.engine {
            Engine::Sqlite(store) => store.vacuum().await,
            Engine::Postgres(_) => Ok(()),
        }
    }
}

/// The PostgreSQL settings of this daemon.
pub(crate) fn postgres_settings(options: &Options, url: &str) -> postgres::Settings {
    postgres::Settings {
        url: url.into(),
        node: options.node.address.clone(),
        lease: options.node.lease,
        shared_workspaces: options.node.shared_workspaces.clone(),
        blob_grace: BLOB_GRACE,
        objects: options.objects.clone(),
    }
}
