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
    TurnOverheads, Uploads, Vision,
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
    /// The name of the protocol's folder and of its section in the configuration file.
    pub name: &'static str,
    /// The sockets of the protocol, each a key in `[listen]`.
    pub listeners: &'static [ListenerSpec],
    /// The keys of the protocol's section.
    pub options: &'static [OptionSpec],
    /// Environment variables of the original server that are still read.
    pub variables: &'static [Variable],
    /// Checks the configuration. Fails if a value cannot be used, with a message for the user.
    pub configure: fn(&Config<'_>) -> Result<Box<dyn Protocol>, ConfigError>,
}

/// A socket that a protocol is served on.
#[derive(Debug)]
pub struct ListenerSpec {
    /// The key in `[listen]`.
    pub name: &'static str,
    /// The default address.
    pub default: &'static str,
    /// The transport of the listener.
    pub transport: Transport,
    /// True if the daemon does not start without this listener. Other listeners are skipped with a warning
    /// if another program uses their default address.
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
    /// A Unix socket, by default a file of this name in the data directory, where the commands find it that
    /// connect their standard input and output to the daemon.
    Attached(&'static str),
}

impl ListenerSpec {
    /// An HTTP listener that is skipped if its default address is in use.
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
    /// The name of the variable.
    pub name: &'static str,
    /// The configuration key that the variable sets.
    pub key: &'static str,
    /// Prepended to the variable's value.
    pub prefix: &'static str,
}

/// The type of a configuration value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Any text.
    Text,
    /// Text that is never shown.
    Secret,
    /// A file or folder. A relative path starts at the folder that the program was started in.
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

/// A configuration key, its type and its default as TOML, if any. `*` matches any name.
pub type OptionSpec = (&'static str, Shape, Option<&'static str>);

/// The configuration cannot be used. The message names the key and where its value comes from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// The values of the configuration, from files, variables and flags.
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
    /// The source of a value, for messages.
    fn source(&self, key: &str) -> &str;
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<&str>;
}

/// The configuration, for a protocol to check.
pub struct Config<'a> {
    /// The values of all keys.
    pub values: &'a dyn Values,
    /// The TCP addresses of the enabled listeners.
    pub addresses: &'a [(&'static str, SocketAddr)],
    /// The data directory of the daemon.
    pub data_dir: &'a Path,
    /// The model of sessions that choose none.
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
    /// The TCP address of a listener; `None` if it is disabled.
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
    /// Builds the endpoints of the protocol. `is_on` is false if none of its listeners is bound; then only
    /// the background tasks are used.
    fn serve(&self, services: &Arc<Services>, is_on: bool) -> ServedProtocol;
}

/// The services of the daemon that protocols use.
#[derive(Clone)]
pub struct Services {
    /// Sessions: create, submit, follow.
    pub sessions: Arc<dyn Sessions>,
    /// Reads sessions from the journal without loading them.
    pub archive: Arc<dyn Sessions>,
    /// Search in the messages of all sessions.
    pub search: Arc<dyn SessionSearch>,
    /// Changes of turns, prompts of models, and previews of commands.
    pub inspection: Arc<dyn SessionInspection>,
    /// What the daemon added to the time of recent turns.
    pub overheads: Arc<dyn TurnOverheads>,
    /// Summaries and aliases of sessions.
    pub directory: Arc<dyn SessionIndex>,
    /// Content by hash.
    pub blobs: Arc<dyn Blobs>,
    /// All models.
    pub models: Arc<dyn Models>,
    /// Checks whether storage is writable.
    pub storage_health: Arc<dyn StorageHealth>,
    /// Clock and new ids.
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
    /// Lists tool servers for users, and changes what they allow.
    pub tool_server_control: Arc<dyn ToolServerControl>,
    /// Checks of the machine and the configuration.
    pub diagnosis: Arc<dyn Diagnosis>,
    /// Prompts that tool servers offer for people to send.
    pub server_prompts: Arc<dyn ServerPrompts>,
    /// Publishes which sessions changed.
    pub change_feed: ChangeFeed,
    /// Which front ends follow which sessions.
    pub presence: Presence,
    /// The editors that have sessions open and share their files.
    pub editors: EditorRegistry,
    /// The tools of the daemon that run without an approval.
    pub unattended_tools: Vec<String>,
    /// `Ok` if the default model can search the web, otherwise the reason.
    pub web_search: Result<(), String>,
    /// Cancelled when the daemon begins to shut down.
    pub closing: CancellationToken,
    /// Cancelled when all sessions are parked and nothing more is appended.
    pub sessions_parked: CancellationToken,
    /// Computes vectors of texts.
    pub embedder: Arc<dyn Embedder>,
    /// Finds text in pictures.
    pub ocr: Arc<dyn Ocr>,
    /// Vision: models that describe pictures.
    pub vision: Arc<dyn Vision>,
    /// True if a vision model is configured; otherwise vision uses only the text in a picture.
    pub has_vision_model: bool,
}

impl Services {
    /// The services for one front end; its followers of sessions are counted under its name.
    pub fn for_front_end(&self, name: &'static str) -> Arc<Self> {
        let sessions = self.presence.counted(name, Arc::clone(&self.sessions));
        Arc::new(Self { sessions, ..self.clone() })
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Services")
    }
}

/// The endpoints and background tasks of a protocol.
#[derive(Debug, Default)]
pub struct ServedProtocol {
    /// An endpoint per listener; those of disabled listeners are dropped.
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

/// The service of a listener.
#[derive(Debug)]
pub struct Endpoint {
    /// The listener's name.
    pub listener: &'static str,
    /// The service that handles its requests.
    pub service: Service,
}

/// A service of a protocol.
pub enum Service {
    /// An HTTP service, called for requests that the access policy admits.
    Http {
        /// The routes.
        router: Router,
        /// What the protocol adds to the access policy.
        access: AccessRules,
    },
    /// A service on a Unix socket; runs until the daemon shuts down.
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
    pub has_own_auth: fn(&str) -> bool,
    /// The protocol's response to a refused request.
    pub refuse: fn(&Denied) -> Response,
}

impl fmt::Debug for AccessRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessRules").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl AccessRules {
    /// Rules that only add these host names.
    pub fn new(hosts: Vec<String>, refuse: fn(&Denied) -> Response) -> Self {
        Self { token: None, hosts, has_own_auth: |_| false, refuse }
    }
}

#[cfg(test)]
pub(crate) mod fixture;
