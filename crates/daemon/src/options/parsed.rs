//! The options, parsed and checked.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use quintet_dialects::dialect::{Config, Dialect, Protocol};
use quintet_dialects::{DIALECTS, RunOptions, run_options};
use quintet_kernel::model::ModelRef;
use quintet_kernel::policy::{ApprovalPolicy, Limits, Recovery, ReviewMode, VerifyPolicy};
use quintet_providers::ProviderConfig;
use quintet_stores::objects::ObjectSettings;
use quintet_tools::FetchPolicy;
use quintet_tools::sandbox::Sandbox;

use super::layers::Layers;
use super::listeners::{self, ListenAddress, Listener};

mod auth;
mod credentials;
mod local;
mod mcp;
mod memory;
mod node;
mod policy;
mod providers;
mod sandbox;
mod search;
mod senses;
mod store;
mod subagents;
mod voice;

pub(crate) use auth::Auth;
pub(crate) use credentials::Keys;
pub(super) use credentials::names_to_look_up as keys_to_look_up;
pub(crate) use mcp::{Mcp, OAuth};
pub(crate) use memory::Memory;
pub(crate) use node::Node;
pub(crate) use search::{SEARCH, Search};
pub(crate) use senses::EmbeddingSource;
pub(crate) use voice::{TranscriptionSource, VoiceSource};

/// A configured provider.
pub(crate) type Provider = ProviderConfig;

/// The options of the daemon.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) data_dir: PathBuf,
    /// The PostgreSQL database of sessions; `None` for SQLite in the data directory.
    pub(crate) store: Option<String>,
    /// The object store for content that is too long for the database.
    pub(crate) objects: Option<ObjectSettings>,
    /// This daemon as a node among others that share the store.
    pub(crate) node: Node,
    /// The folder for data that need not survive a reboot, if there is one.
    pub(crate) runtime_dir: Option<PathBuf>,
    pub(crate) default_model: ModelRef,
    /// The sockets to listen on.
    pub(crate) listeners: Vec<Listener>,
    /// The protocols, with their own options checked.
    pub(crate) protocols: Vec<(&'static Dialect, Box<dyn Protocol>)>,
    /// The control plane of runs.
    pub(crate) runs: RunOptions,
    /// All secrets of the configuration, which must never be logged.
    pub(crate) secrets: Vec<String>,
    /// The rules that decide which peers may connect to a listener.
    pub(crate) auth: Auth,
    /// Limits of subagents; `None` if there are none.
    pub(crate) subagents: Option<subagents::Limits>,
    /// True if every decision about a tool call is logged.
    pub(crate) audit: bool,
    pub(crate) providers: Vec<Provider>,
    /// The sources of their keys.
    pub(crate) keys: Keys,
    pub(crate) fallback: Vec<ModelRef>,
    /// The local models, unless a configured provider has that name.
    pub(crate) local: Option<quintet_local::Settings>,
    /// Embeddings, OCR and vision.
    pub(crate) senses: senses::Senses,
    pub(crate) approval: ApprovalPolicy,
    pub(crate) review: ReviewMode,
    pub(crate) context_tokens: u64,
    /// The settings of memory, if it is on.
    pub(crate) memory: Option<Memory>,
    pub(crate) verify: VerifyPolicy,
    pub(crate) verify_commands: Vec<String>,
    pub(crate) sandbox: Sandbox,
    /// Maximum disk space for the old content of files, in bytes.
    pub(crate) undo: u64,
    /// The servers that `fetch_url` may access, if it is on.
    pub(crate) fetch: Option<FetchPolicy>,
    pub(crate) search: Search,
    /// The MCP servers whose tools are offered to models.
    pub(crate) mcp: Mcp,
    pub(crate) limits: Limits,
    pub(crate) recovery: Recovery,
    /// How long a client that runs a call may be disconnected before it loses the call.
    pub(crate) client_grace: Duration,
    /// Advice that is logged at start.
    pub(crate) advice: Vec<String>,
}

impl Options {
    pub(super) fn parse(layers: &Layers) -> Result<Self> {
        let providers = providers::parse(layers)?;
        let local = local::parse(layers, &providers)?;
        let (default_model, advice) = providers::default_model(layers, &providers, local.as_ref())?;
        let senses = senses::parse(layers, &providers)?;
        let data_dir = data_dir(layers)?;
        let memory = memory::parse(layers, &data_dir)?;
        let sandbox = sandbox::parse(layers, &data_dir)?;
        let listeners = listeners::parse(layers, &data_dir)?;
        let auth = auth::parse(layers, &listeners)?;
        let names: Vec<_> = providers.iter().map(|provider| provider.name.clone()).collect();
        let config = Config {
            values: layers,
            addresses: &addresses(&listeners),
            data_dir: &data_dir,
            default_model: &default_model,
            providers: &names,
        };
        let protocols = protocols(&config)?;
        let runs = run_options(&config)?;
        Ok(Self {
            protocols,
            runs,
            secrets: layers.secrets(),
            subagents: subagents::parse(layers),
            audit: layers.flag("audit.log").unwrap_or(true),
            data_dir,
            store: store::url(layers)?,
            objects: store::objects(layers)?,
            node: node::parse(layers)?,
            runtime_dir: providers::variable(layers, "XDG_RUNTIME_DIR")
                .map(PathBuf::from)
                .filter(|dir| dir.is_absolute() && dir.is_dir()),
            default_model,
            auth,
            listeners,
            fallback: providers::fallback(layers, &providers, local.as_ref())?,
            keys: credentials::keys(layers)?,
            providers,
            local,
            senses,
            approval: policy::approval(layers)?,
            review: policy::review(layers)?,
            context_tokens: layers.number("context.tokens").unwrap_or_default(),
            memory,
            verify: VerifyPolicy {
                auto: layers.flag("verify.auto").unwrap_or(true),
                tool: "verify".into(),
                attempts: u32::try_from(layers.number("verify.attempts").unwrap_or(3))
                    .unwrap_or(u32::MAX),
            },
            verify_commands: layers.list("verify.commands").unwrap_or_default(),
            sandbox,
            undo: layers.number("undo.limit_bytes").unwrap_or_default(),
            fetch: fetch(layers)?,
            search: search::parse(layers)?,
            mcp: mcp::parse(layers)?,
            limits: limits(layers),
            client_grace: Duration::from_secs(
                layers.number("clients.grace_seconds").unwrap_or_default(),
            ),
            recovery: choice(
                layers,
                "recovery.policy",
                &[
                    ("continue", Recovery::Continue),
                    ("ask", Recovery::Ask),
                    ("leave", Recovery::Leave),
                ],
            )?,
            advice,
        })
    }

    /// The sources of keys, by section.
    pub(super) fn key_sources(&self) -> BTreeMap<String, String> {
        let providers = self.keys.sources.iter();
        let sources = providers.map(|(name, source)| (format!("providers.{name}"), source.clone()));
        let search = self.search.source.clone().map(|source| ("search".into(), source));
        sources.chain(search).collect()
    }

    /// Incomplete settings, each with a remedy.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &(String, &'static str)> {
        self.keys.warnings.iter().chain(&self.search.warning)
    }

    /// The TCP address of a listener, if it is on.
    pub(crate) fn address(&self, listener: &str) -> Option<SocketAddr> {
        let found = addresses(&self.listeners).into_iter().find(|(name, _)| *name == listener);
        found.map(|(_, address)| address)
    }

    /// True if no model is configured.
    pub(crate) fn unconfigured(&self) -> bool {
        !self.advice.is_empty()
    }
}

fn data_dir(layers: &Layers) -> Result<PathBuf> {
    if let Some(dir) = layers.str("data_dir") {
        return Ok(dir.into());
    }
    let variable = |name: &str| layers.environment.get(name).filter(|value| !value.is_empty());
    let dir = match (variable("XDG_DATA_HOME"), variable("HOME")) {
        (Some(data), _) => PathBuf::from(data).join("quintet"),
        (None, Some(home)) => PathBuf::from(home).join(".local/share/quintet"),
        (None, None) => bail!("data_dir is not set, and there is no HOME to put it in"),
    };
    std::path::absolute(dir).context("data_dir")
}

fn fetch(layers: &Layers) -> Result<Option<FetchPolicy>> {
    let key = "tools.fetch_private";
    let reach = FetchPolicy::new(&layers.list(key).unwrap_or_default());
    let reach = reach.map_err(|why| anyhow::anyhow!("{key}: {why} ({})", layers.source(key)))?;
    Ok(layers.flag("tools.fetch_url").unwrap_or(false).then_some(reach))
}

/// Lets every protocol check its options.
fn protocols(config: &Config<'_>) -> Result<Vec<(&'static Dialect, Box<dyn Protocol>)>> {
    let configure = |dialect: &'static Dialect| Ok((dialect, (dialect.configure)(config)?));
    DIALECTS.iter().map(configure).collect()
}

/// The listeners that are TCP sockets, by name.
fn addresses(listeners: &[Listener]) -> Vec<(&'static str, SocketAddr)> {
    let address = |listener: &Listener| match &listener.place {
        ListenAddress::Tcp(address) => Some((listener.spec.name, *address)),
        ListenAddress::Unix(_) => None,
    };
    listeners.iter().filter_map(address).collect()
}

fn choice<T: Clone>(layers: &Layers, path: &str, words: &[(&str, T)]) -> Result<T> {
    let given = layers.str(path).unwrap_or_default();
    if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == given) {
        return Ok(meaning.clone());
    }
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    bail!("{path} must be one of {known:?}, not {given:?} ({})", layers.source(path))
}

fn limits(layers: &Layers) -> Limits {
    let number = |path: &str| layers.number(path).unwrap_or(u64::MAX);
    let small = |path: &str| u32::try_from(number(path)).unwrap_or(u32::MAX);
    Limits {
        steps: small("limits.steps").max(1),
        tokens: number("limits.tokens"),
        time: Duration::from_secs(number("limits.seconds")),
        repeats: small("limits.repeats").max(1),
        compact_at_percent: number("limits.compact_at_percent"),
        assumed_window: number("limits.assumed_window"),
    }
}
