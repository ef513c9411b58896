//! The stores under test, and their test data.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use quintet_kernel::event::{Event, Record};
use quintet_kernel::id::{BlobId, SessionId, StepId, TurnId};
use quintet_kernel::message::Attachment;
use quintet_kernel::model::{Channel, Usage};
use quintet_kernel::port::{
    Artifacts, Batch, Blobs, Installs, Journal, Leases, NodeAddress, Preferences, RunJournal,
    SessionIndex,
};
use quintet_kernel::session_summary::{SessionSummary, Status};
use quintet_kernel::time::Time;
use quintet_stores::objects::{Credentials, Location, ObjectSettings};
use quintet_stores::{DataDir, FileBlobs, memory, postgres};
use quintet_testkit::postgres::Server;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// All ports of a store of sessions.
pub(crate) trait Store:
    Journal + Leases + SessionIndex + Installs + Preferences + Artifacts
{
}
impl<T: Journal + Leases + SessionIndex + Installs + Preferences + Artifacts> Store for T {}

/// A store that can be started and restarted.
pub(crate) enum Subject {
    Memory(memory::MemoryStore),
    Sqlite(TempDir),
    Postgres(String),
    /// PostgreSQL with all content except the empty one in objects.
    Objects(String, Box<ObjectSettings>),
}

/// Settings of a test's node: unreferenced content is deleted at the next start.
pub(crate) fn settings(url: &str, node: &str) -> postgres::Settings {
    postgres::Settings {
        url: url.into(),
        node: NodeAddress { name: node.into(), advertise: None },
        lease: Duration::from_secs(60),
        shared_workspaces: Vec::new(),
        blob_grace: Duration::ZERO,
        objects: None,
    }
}

/// An empty object store: in the S3-compatible server that `S3_ENDPOINT` names, otherwise in a
/// folder. All content that is not empty is an object.
pub(crate) fn object_settings() -> ObjectSettings {
    static PLACES: AtomicU32 = AtomicU32::new(0);
    let place = PLACES.fetch_add(1, Ordering::Relaxed);
    let url = match std::env::var_os("S3_ENDPOINT") {
        Some(endpoint) => {
            let (endpoint, process) = (endpoint.to_string_lossy(), std::process::id());
            format!("s3://quintet/test-{process}-{place}?endpoint={endpoint}")
        }
        None => {
            static FOLDER: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
            format!("file://{}/{place}", FOLDER.path().display())
        }
    };
    let (access_key, secret_key) = ("S3RVER".into(), "S3RVER".into());
    ObjectSettings {
        location: Location::parse(&url, None).expect("a location"),
        credentials: Some(Credentials { access_key, secret_key, session_token: None }),
        limit: 0,
    }
}

/// A node of a database.
pub(crate) fn node(url: &str, name: &str) -> postgres::Store {
    postgres::Store::open(&settings(url, name)).expect("the database exists")
}

/// A node of a database with an object store.
pub(crate) fn node_with_objects(
    url: &str,
    name: &str,
    objects: &ObjectSettings,
) -> postgres::Store {
    let settings = postgres::Settings { objects: Some(objects.clone()), ..settings(url, name) };
    postgres::Store::open(&settings).expect("the database exists")
}

/// A node that only puts and reads content, next to another one.
fn blobs_node(url: &str, objects: Option<&ObjectSettings>) -> postgres::Store {
    let (blob_grace, objects) = (Duration::from_secs(60), objects.cloned());
    let settings = postgres::Settings { blob_grace, objects, ..settings(url, "blobs") };
    postgres::Store::open(&settings).expect("the database exists")
}

impl Subject {
    /// One store of each kind, empty.
    pub(crate) fn all() -> [Self; 3] {
        [
            Self::Memory(memory::MemoryStore::new()),
            Self::Sqlite(tempfile::tempdir().expect("a directory")),
            Self::Postgres(Server::shared().fresh()),
        ]
    }

    /// PostgreSQL with an object store, empty.
    pub(crate) fn with_objects() -> Self {
        Self::Objects(Server::shared().fresh(), object_settings().into())
    }

    /// The store's blobs.
    pub(crate) fn blobs(&self) -> Arc<dyn Blobs> {
        match self {
            Self::Memory(store) => Arc::new(store.clone()),
            Self::Sqlite(dir) => {
                Arc::new(FileBlobs::open(&dir.path().join("blobs")).expect("a directory"))
            }
            Self::Postgres(url) => Arc::new(blobs_node(url, None)),
            Self::Objects(url, objects) => Arc::new(blobs_node(url, Some(objects))),
        }
    }

    /// Starts the store for runs only. The last start must have been dropped.
    pub(crate) fn start_runs(&self) -> Arc<dyn RunJournal> {
        match self {
            Self::Memory(store) => Arc::new(store.reopen()),
            Self::Sqlite(dir) => {
                let dir = DataDir::open(dir.path()).expect("the directory is not locked");
                Arc::new(dir.sqlite().expect("the database is valid"))
            }
            Self::Postgres(url) => Arc::new(node(url, "a")),
            Self::Objects(url, objects) => Arc::new(node_with_objects(url, "a", objects)),
        }
    }

    /// Starts the store. The last start must have been dropped.
    pub(crate) fn start(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => Arc::new(store.reopen()),
            Self::Sqlite(dir) => {
                let dir = DataDir::open(dir.path()).expect("the directory is not locked");
                Arc::new(dir.sqlite().expect("the database is valid"))
            }
            Self::Postgres(url) => Arc::new(node(url, "a")),
            Self::Objects(url, objects) => Arc::new(node_with_objects(url, "a", objects)),
        }
    }
}

pub(crate) fn session(name: &str) -> SessionId {
    SessionId::parse(name).expect("a name")
}

/// An event with the text `word`; 37 bytes in the journal for one letter.
pub(crate) fn event(word: &str) -> Event {
    Event::Labelled { key: word.into(), value: None }
}

/// The id of the content for a word: the same everywhere.
pub(crate) fn blob(word: &str) -> BlobId {
    let digest = Sha256::digest(word.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    BlobId::parse(&hex).expect("hex digits make an id")
}

/// An event with the text `word`; `#word` refers to that content, `~word` is text of a model.
fn event_for(word: &str) -> Event {
    if let Some(text) = word.strip_prefix('~') {
        let (turn, step) =
            (TurnId::parse("t").expect("a name"), StepId::parse("p").expect("a name"));
        return Event::TextAppended {
            turn,
            step,
            offset: 0,
            channel: Channel::Text,
            text: text.into(),
            pieces: Vec::new(),
        };
    }
    let Some(name) = word.strip_prefix('#') else { return event(word) };
    let (mime, blob, size) = ("text/plain".into(), blob(name), 1);
    Event::AttachmentAdded(Attachment { name: name.into(), mime, blob, size })
}

/// A batch of events, at the time of the summary or at their own (`a@9`). Stores number events from
/// the expected head, so these have no number.
pub(crate) fn batch(summary: SessionSummary, words: &[&str]) -> Batch {
    let record = |word: &&str| {
        let (word, at) = match word.split_once('@') {
            Some((word, at)) => (word, Time::from_micros(at.parse().unwrap())),
            None => (*word, summary.updated),
        };
        Arc::new(Record { seq: 0, at, event: event_for(word) })
    };
    let records = words.iter().map(record).collect();
    Batch { records, summary }
}

pub(crate) fn summary(name: &str, created: i64, updated: i64) -> SessionSummary {
    SessionSummary {
        id: session(name),
        created: Time::from_micros(created),
        forked: None,
        model: None,
        head: 0,
        updated: Time::from_micros(updated),
        status: Status::WaitingApproval,
        workspace: PathBuf::from("/tmp/a place"),
        labels: BTreeMap::from([("k".into(), "ü".into())]),
        title: "hello".into(),
        last_prompt: "hello again".into(),
        last_answer: String::new(),
        messages: 2,
        tokens: 30,
        usage: Usage::default(),
        context: 0,
        last_turn: None,
        error: Some("none".into()),
        open: false,
    }
}
