//! All ports in a PostgreSQL database that several daemons can share.
//!
//! The store has its own thread and async runtime: heartbeats do not wait for a busy daemon, and
//! queued changes are written before the store is dropped. Each node has a row with a heartbeat,
//! and each session a row with the node that may append; see `node` and `writer` for how they
//! exclude each other.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use quintet_kernel::port::{NodeAddress, StorageError};
use tokio::runtime::Builder;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio_postgres::Error as PostgresError;

use crate::Error;
use crate::objects::{ObjectSettings, ObjectStore};
use connection::{Connection, Pool};
use garbage::Garbage;
use health::Health;
use node::Node;
use url::Target;
use wakes::{Moved, Notices};
use writer::{Queue, Writer};

mod append;
mod blobs;
mod connection;
mod contents;
mod erase;
mod fork;
mod front_ends;
mod garbage;
mod health;
mod index;
mod journal;
mod migrate;
mod node;
mod nodes;
mod probe;
mod runs;
mod url;
mod wakes;
mod writer;

pub use probe::{Probe, probe};

/// Worker threads of a store; the database does most of the work.
const THREADS: usize = 2;
/// Maximum time for closing once all queued changes are written.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// How long the server waits for an observer in the middle of a write.
const OBSERVER_LEASE: Duration = Duration::from_secs(10);

/// The role of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// A node, which may own sessions.
    Node,
    /// Not a node: the store is only read.
    Observer,
}

/// Settings of a node.
#[derive(Clone)]
pub struct Settings {
    /// The URL of the database: `postgres://user:password@host/database`.
    pub url: String,
    /// The name of this node and its address for other nodes.
    pub node: NodeAddress,
    /// How long a node without heartbeats owns its sessions.
    pub lease: Duration,
    /// Folders that all nodes have.
    pub shared_workspaces: Vec<PathBuf>,
    /// How long unreferenced content is kept; longer than storing content takes.
    pub blob_grace: Duration,
    /// Where content is stored that is too long for the database; the database stores everything if
    /// `None`.
    pub objects: Option<ObjectSettings>,
}

/// The URL may contain a password.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("node", &self.node).finish_non_exhaustive()
    }
}

/// A node of a store in a PostgreSQL database. Dropping it writes queued changes and leaves the
/// cluster.
pub struct Store {
    node: Arc<Node>,
    pool: Arc<Pool>,
    queue: Queue,
    moved: mpsc::UnboundedSender<Moved>,
    notices: broadcast::Sender<wakes::Notice>,
    health: Arc<Health>,
    objects: Option<ObjectStore>,
    /// Taken when the store is dropped.
    thread: Option<JoinHandle<()>>,
}

impl Store {
    /// Connects as an observer: everything can be read, but no session can be owned.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or its tables are of a newer version.
    pub fn observe(url: &str, objects: Option<ObjectSettings>) -> Result<Self, Error> {
        let settings = Settings {
            url: url.into(),
            node: NodeAddress::default(),
            lease: OBSERVER_LEASE,
            shared_workspaces: Vec::new(),
            blob_grace: Duration::MAX,
            objects,
        };
        Self::connect(&settings, Role::Observer)
    }

    /// Connects, migrates the tables and joins as a node. Blocks until that is done.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, its tables are of a newer version, another live
    /// daemon has this node's name, or the object store cannot be opened.
    pub fn open(settings: &Settings) -> Result<Self, Error> {
        Self::connect(settings, Role::Node)
    }

    fn connect(settings: &Settings, role: Role) -> Result<Self, Error> {
        let unknown = |reason| Error::Server { server: "store.url".into(), reason };
        let target = Target::parse(&settings.url).map_err(unknown)?;
        let server = target.server.clone();
        let objects = settings.objects.as_ref().map(ObjectStore::open).transpose()?;
        let garbage = Garbage { target, objects, grace: settings.blob_grace };
        Self::start(settings, garbage, role).map_err(|reason| Error::Server { server, reason })
    }

    fn start(settings: &Settings, garbage: Garbage, role: Role) -> Result<Self, String> {
        let (target, objects) = (garbage.target.clone(), garbage.objects.clone());
        let failed = |error: std::io::Error| error.to_string();
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("postgres")
            .enable_all()
            .build()
            .map_err(failed)?;
        let shared = settings.shared_workspaces.iter();
        let shared = shared.map(|path| path.to_string_lossy().trim_end_matches('/').to_owned());
        let node = Node::new(settings.node.clone(), settings.lease, shared.collect());
        let (node, health) = (Arc::new(node), Arc::new(Health::default()));
        let pool = Arc::new(Pool::new(target.clone(), runtime.handle().clone()));
        let (queue, changes) = Queue::new();
        let (moved, notified) = mpsc::unbounded_channel();
        let listener = Notices::new(target.clone(), Arc::clone(&node));
        let notices = listener.sender();
        let writer = Writer {
            target: target.clone(),
            node: Arc::clone(&node),
            health: Arc::clone(&health),
            moved: moved.clone(),
            connection: None,
        };
        let (opened, opening) = std::sync::mpsc::channel();
        let of_thread = Arc::clone(&node);
        let work = move || {
            runtime.block_on(async move {
                let heart = match join(&garbage, &of_thread, role).await {
                    Ok(heart) => heart,
                    Err(reason) => return opened.send(Err(reason)).unwrap_or_default(),
                };
                opened.send(Ok(())).unwrap_or_default();
                let mut tasks = JoinSet::new();
                tasks.spawn(listener.run(notified));
                if role == Role::Node {
                    tasks.spawn(Arc::clone(&of_thread).beat(heart, target.clone()));
                    tasks.spawn(garbage.run());
                }
                writer.run(changes).await;
                // A heartbeat after this node has left would make it look alive again.
                tasks.shutdown().await;
                if role == Role::Node {
                    leave(&target, &of_thread).await;
                }
            });
            runtime.shutdown_timeout(CLOSE_TIMEOUT);
        };
        let thread = thread::Builder::new().name("journal".into()).spawn(work).map_err(failed)?;
        opening.recv().unwrap_or_else(|_| Err("its thread panicked".into()))?;
        Ok(Self { node, pool, queue, moved, notices, health, objects, thread: Some(thread) })
    }

    /// Resolves with the reason when this node can never continue. The daemon should exit then and
    /// report the reason.
    pub fn ended(&self) -> impl Future<Output = String> + Send + use<> {
        self.node.ended()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // The writer ends once nothing can be queued any more.
        (self.queue, _) = Queue::new();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the journal's writer panicked");
        }
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("node", &self.node).finish_non_exhaustive()
    }
}

/// Connects for the first time; returns the connection for heartbeats.
async fn join(garbage: &Garbage, node: &Node, role: Role) -> Result<Connection, String> {
    let handle = tokio::runtime::Handle::current();
    let failed = |error: PostgresError| reason(&error);
    let db = Connection::open(&garbage.target, &handle).await.map_err(failed)?;
    migrate::migrate(&db).await?;
    if role == Role::Node {
        garbage.collect_at_start(&db).await.map_err(failed)?;
        node.register(&db).await?;
    }
    Ok(db)
}

async fn leave(target: &Target, node: &Node) {
    let handle = tokio::runtime::Handle::current();
    let left = async { node.leave(&Connection::open(target, &handle).await?).await };
    if let Err(error) = left.await {
        tracing::warn!(error = reason(&error), "other nodes will wait for the end of the lease");
    }
}

/// Converts a database error to a storage error.
fn trouble(error: PostgresError) -> StorageError {
    StorageError::Unavailable(reason(&error))
}

/// The server's message, or why the server cannot be reached.
fn reason(error: &PostgresError) -> String {
    use std::error::Error as _;
    match (error.as_db_error(), error.source()) {
        (Some(said), _) => format!("{} ({})", said.message(), said.code().code()),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}

/// A number as PostgreSQL stores it. No number exceeds the range.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that PostgreSQL stored.
fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
