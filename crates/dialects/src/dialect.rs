//! What a protocol declares about itself, so that the daemon can serve it without knowing it.
//!
//! A protocol is a folder with a `DIALECT` constant and a line in [`crate::DIALECTS`]. Everything else
//! follows from there: the keys of the configuration file, the listeners with their access rules and
//! limits, the ready line, the rows of `quintet doctor` and the page `docs/protocols/NAME.md`.
//!
//! ```text
//! DIALECTS → option keys → Config → configure() → Protocol → serve(Services) → ServedProtocol → listeners
//! ```

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use quintet_kernel::model::ModelRef;
use quintet_kernel::port::{
    Artifacts, Blobs, BoxFuture, Clock, Diagnosis, DirectoryListing, Embedder, Installs, Memory,
    Models, Ocr, Preferences, Runs, ServerPrompts, SessionIndex, SessionInspection, SessionSearch,
    SessionToolServers, Sessions, SpeechSynthesizer, StorageHealth, ToolServerControl, Transcriber,
    Uploads, Vision,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::change_feed::ChangeFeed;
use crate::editors::EditorRegistry;
use crate::presence::Presence;
use crate::transport::access::{Denied, Token};
use crate::transport::uds::Socket;

/// One protocol.
#[derive(Debug)]
pub struct Dialect {
    /// The name of its folder and of its section in the configuration file.
    pub name: &'static str,
    /// The sockets it is served on, each a key below `[listen]`.
    pub listeners: &'static [ListenerSpec],
    /// The keys of its section.
    pub options: &'static [OptionSpec],
    /// Environment variables of the original server that still count.
    pub variables: &'static [Variable],
    /// Checks the configuration. Fails if a value cannot be used, with a message for the user.
    pub configure: fn(&Config<'_>) -> Result<Box<dyn Protocol>, ConfigError>,
}

/// A socket that a protocol is served on.
#[derive(Debug)]
pub struct ListenerSpec {
    /// The key below `[listen]`.
    pub name: &'static str,
    /// Where it listens if the user names no place.
    pub default: &'static str,
    /// The transport of the listener.
    pub transport: Transport,
    /// True if the daemon does not start without it. Others are left out, with a warning, if another
    /// program has their default address.
    pub required: bool,
    /// Added to the default port by `quintet serve --dev`.
    pub dev_port_offset: u16,
}

/// The transport of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// HTTP, with Server-Sent Events or WebSockets on some paths.
    Http,
    /// A WebSocket at the root.
    WebSocket,
    /// A Unix socket, by default a file of this name in the user's runtime directory. `{pid}` is replaced by
    /// the process id.
    Unix(&'static str),
    /// A Unix socket, by default a file of this name in the data directory, where the commands look
    /// for it that attach their standard input and output to the daemon.
    Attached(&'static str),
}

impl ListenerSpec {
    /// An HTTP listener that is left out if its default address is taken.
    pub const fn http(name: &'static str, default: &'static str) -> Self {
        Self { name, default, transport: Transport::Http, required: false, dev_port_offset: 0 }
    }

    /// A Unix socket in the data directory.
    pub const fn attached(name: &'static str, file: &'static str) -> Self {
        let transport = Transport::Attached(file);
        Self { name, default: "auto", transport, required: false, dev_port_offset: 0 }
    }
}

/// An environment variable that sets a key.
#[derive(Debug)]
pub struct Variable {
    /// The variable.
    pub name: &'static str,
    /// The key that it sets.
    pub key: &'static str,
    /// Put before the variable's value.
    pub prefix: &'static str,
}

/// What the value of a configuration key looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any text.
    Text,
    /// Text that is never shown.
    Secret,
    /// A file or folder. A relative one counts from the folder that the program started in.
    Path,
    /// True or false.
    Flag,
    /// A whole number that is not negative.
    Number,
    /// A list of texts.
    List,
    /// A list of tables with fields of their own.
    Tables,
}

/// A configuration key, its shape and its default as TOML, if any. `*` matches any name.
pub type OptionSpec = (&'static str, Shape, Option<&'static str>);

/// The configuration cannot be used. The message names the key and where its value comes from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// The values of the configuration, whatever file, variable or flag they come from.
pub trait Values {
    /// A text, secret or path.
    fn text(&self, key: &str) -> Option<&str>;
    /// A flag.
    fn flag(&self, key: &str) -> Option<bool>;
    /// A number.
    fn number(&self, key: &str) -> Option<u64>;
    /// A list of texts.
    fn list(&self, key: &str) -> Option<Vec<String>>;
    /// A list of tables, each as JSON.
    fn tables(&self, key: &str) -> Vec<Value>;
    /// Where a value comes from, for messages.
    fn source(&self, key: &str) -> &str;
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<&str>;
}

/// The configuration as a protocol sees it.
pub struct Config<'a> {
    /// The values of all keys.
    pub values: &'a dyn Values,
    /// The TCP addresses of the listeners that are on.
    pub addresses: &'a [(&'static str, SocketAddr)],
    /// Where the daemon keeps its data.
    pub data_dir: &'a Path,
    /// The model of sessions that name none.
    pub default_model: &'a ModelRef,
    /// The names of all providers.
    pub providers: &'a [String],
}

impl fmt::Debug for Config<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Config<'_> {
    /// The TCP address of a listener, if it is on.
    pub fn address(&self, listener: &str) -> Option<SocketAddr> {
        let found = self.addresses.iter().find(|(name, _)| *name == listener);
        found.map(|(_, address)| *address)
    }

    /// A text that is not empty.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.values.text(key).filter(|text| !text.is_empty())
    }

    /// A secret that is not empty.
    pub fn token(&self, key: &str) -> Option<Token> {
        self.text(key).map(Token::new)
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<PathBuf> {
        self.values.variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
    }

    /// A list of texts; empty if it is not set.
    pub fn list(&self, key: &str) -> Vec<String> {
        self.values.list(key).unwrap_or_default()
    }
}

/// A protocol whose configuration was checked.
pub trait Protocol: fmt::Debug + Send + Sync {
    /// Builds what its listeners answer with. `is_on` is false if none of them is bound; then only the
    /// background tasks count.
    fn serve(&self, services: &Arc<Services>, is_on: bool) -> ServedProtocol;
}

/// The parts of the daemon that protocols are built on.
#[derive(Clone)]
pub struct Services {
    /// Sessions: create, submit, follow.
    pub sessions: Arc<dyn Sessions>,
    /// Reads sessions from the journal without loading them.
    pub archive: Arc<dyn Sessions>,
    /// Search in the messages of all sessions.
    pub search: Arc<dyn SessionSearch>,
    /// What turns changed, what models were sent, and what commands would lead to.
    pub inspection: Arc<dyn SessionInspection>,
    /// Summaries and outside names of sessions.
    pub directory: Arc<dyn SessionIndex>,
    /// Content by hash.
    pub blobs: Arc<dyn Blobs>,
    /// Every model.
    pub models: Arc<dyn Models>,
    /// Whether storage can be written to.
    pub storage_health: Arc<dyn StorageHealth>,
    /// Clock and fresh ids.
    pub clock: Arc<dyn Clock>,
    /// Front ends that registered.
    pub installs: Arc<dyn Installs>,
    /// Users' settings, with their keys encrypted.
    pub preferences: Arc<dyn Preferences>,
    /// The stored settings.
    pub stored_preferences: Arc<dyn Preferences>,
    /// Pictures that front ends uploaded.
    pub artifacts: Arc<dyn Artifacts>,
    /// The content of artifacts.
    pub uploads: Arc<dyn Uploads>,
    /// The control plane of runs.
    pub runs: Arc<dyn Runs>,
    /// Notes of workspaces, unless memory is off.
    pub memory: Option<Arc<dyn Memory>>,
    /// Transcribes speech.
    pub transcriber: Arc<dyn Transcriber>,
    /// Reads text aloud.
    pub speaker: Arc<dyn SpeechSynthesizer>,
    /// Listings of workspaces.
    pub directory_listing: Arc<dyn DirectoryListing>,
    /// Tool servers (MCP) that clients provide for a session.
    pub tool_servers: Arc<dyn SessionToolServers>,
    /// What people see of tool servers, and what they allow.
    pub tool_server_control: Arc<dyn ToolServerControl>,
    /// The checks of the machine and the configuration.
    pub diagnosis: Arc<dyn Diagnosis>,
    /// Prompts that tool servers offer for people to send.
    pub server_prompts: Arc<dyn ServerPrompts>,
    /// Which sessions changed.
    pub change_feed: ChangeFeed,
    /// Which front ends follow which sessions.
    pub presence: Presence,
    /// The editors that have sessions open and share their files.
    pub editors: EditorRegistry,
    /// The tools of the daemon that run without an approval.
    pub unattended_tools: Vec<String>,
    /// Whether the default model can search the web, or why not.
    pub web_search: Result<(), String>,
    /// Cancelled when the daemon begins to shut down.
    pub closing: CancellationToken,
    /// Cancelled when all sessions are parked and nothing more is appended.
    pub sessions_parked: CancellationToken,
    /// Texts as vectors.
    pub embedder: Arc<dyn Embedder>,
    /// Text on pictures.
    pub ocr: Arc<dyn Ocr>,
    /// Vision: models that describe pictures.
    pub vision: Arc<dyn Vision>,
    /// True if a vision model is configured; otherwise vision uses only the text in a picture.
    pub has_vision_model: bool,
}

impl Services {
    /// The same services for one front end, under whose name its followers of sessions count.
    pub fn for_front_end(&self, name: &'static str) -> Arc<Self> {
        let sessions = self.presence.watched(name, Arc::clone(&self.sessions));
        Arc::new(Self { sessions, ..self.clone() })
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Services")
    }
}

/// What a protocol answers with.
#[derive(Debug, Default)]
pub struct ServedProtocol {
    /// An endpoint per listener; those of listeners that are off are dropped.
    pub endpoints: Vec<Endpoint>,
    /// Tasks that run until the daemon stops, with a name for the log.
    pub background: Vec<(&'static str, Task)>,
}

/// A task that runs until the daemon stops.
pub struct Task(pub BoxFuture<'static, ()>);

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Task")
    }
}

impl Task {
    /// A task that runs this future.
    pub fn new(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }
}

/// What answers on a listener.
#[derive(Debug)]
pub struct Endpoint {
    /// The listener's name.
    pub listener: &'static str,
    /// How requests are answered there.
    pub service: Service,
}

/// How requests are answered on a listener.
pub enum Service {
    /// Over HTTP, after the access policy admitted the request.
    Http {
        /// The routes.
        router: Router,
        /// What the protocol adds to the access policy.
        access: AccessRules,
    },
    /// On a Unix socket, until the daemon closes.
    Unix(Box<dyn FnOnce(Socket) -> BoxFuture<'static, ()> + Send>),
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http { .. } => "Http",
            Self::Unix(_) => "Unix",
        })
    }
}

/// What a protocol adds to the access policy of the daemon.
#[derive(Clone)]
pub struct AccessRules {
    /// The protocol's own token, accepted in addition to the daemon's.
    pub token: Option<Token>,
    /// Additional host names that requests may use.
    pub hosts: Vec<String>,
    /// True for paths at which the protocol itself checks a token or a key.
    pub asks_itself: fn(&str) -> bool,
    /// The protocol's answer to a request that is refused.
    pub refuse: fn(&Denied) -> Response,
}

impl fmt::Debug for AccessRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessRules").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl AccessRules {
    /// Rules of a protocol that is reached under these host names and adds nothing else.
    pub fn new(hosts: Vec<String>, refuse: fn(&Denied) -> Response) -> Self {
        Self { token: None, hosts, asks_itself: |_| false, refuse }
    }
}

#[cfg(test)]
pub(crate) mod fixture;
