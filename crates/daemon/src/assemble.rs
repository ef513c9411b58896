//! Builds the parts of the daemon from its options.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use quintet_dialects::RunOptions;
use quintet_dialects::change_feed::ChangeFeed;
use quintet_dialects::editors::EditorRegistry;
use quintet_kernel::policy::{Action, ApprovalPolicy, Rule, Rules, Verdict};
use quintet_kernel::port::{Blobs, DirectoryListing, Editors, Memory, Models, Tool, Vision};
use quintet_kernel::tool::ToolSpec;
use quintet_kernel::toolset::Toolset;
use quintet_kernel::web_search::{WEB_SEARCH, availability_unattended};
use quintet_local::Local;
use quintet_memory::{MarkdownMemory, MessageIndex};
use quintet_providers::{Providers, Secret};
use quintet_runtime::{
    Archive, Cluster, RunService, RunSettings, Runtime, RuntimeDeps, SystemClock, Timing, subagents,
};
use quintet_stores::DataDir;
use quintet_tools::mcp::{self, McpServers, McpSettings};
use quintet_tools::{MemorySettings, Settings, Toolbox};

use crate::accounts::{EncryptedSettings, UserKeys, Vault};
use crate::mcp::Logins;
use crate::nodes::{HttpForward, NodeToken};
use crate::options::{self, Options};
use crate::senses::{self, Senses};
use crate::sessions;
use crate::storage::Storage;
use crate::vision;
use crate::voice::{self, Voice};

/// All parts of the running daemon.
pub(crate) struct Assembly {
    pub(crate) runtime: Runtime,
    pub(crate) storage: Storage,
    /// The token by which nodes authenticate, if several share the store.
    pub(crate) node_token: Option<NodeToken>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) local: Option<Local>,
    /// Reads sessions from the journal without loading them.
    pub(crate) archive: Archive,
    pub(crate) senses: Senses,
    pub(crate) vision: Arc<dyn Vision>,
    pub(crate) has_vision_model: bool,
    pub(crate) voice: Voice,
    /// The memory, unless it is off.
    pub(crate) memory: Option<Arc<dyn Memory>>,
    /// The search index of messages.
    pub(crate) messages: MessageIndex,
    pub(crate) directory_listing: Arc<dyn DirectoryListing>,
    /// The MCP servers, which are starting.
    pub(crate) mcp: McpServers,
    /// Publishes which sessions changed.
    pub(crate) changes: ChangeFeed,
    /// The editors in which sessions are open.
    pub(crate) editors: EditorRegistry,
    /// Settings of front ends.
    pub(crate) settings: Arc<EncryptedSettings>,
    /// The control plane of runs.
    pub(crate) runs: RunService,
    /// Tools that never need approval.
    pub(crate) unattended_tools: Vec<String>,
    /// `Ok` if the default model can search the web, otherwise why not.
    pub(crate) searches: Result<(), String>,
}

/// Opens the data directory and builds everything.
pub(crate) fn assemble(options: &Options) -> Result<Assembly> {
    let dir = DataDir::open(&options.data_dir)?;
    let storage = Storage::open(options, &dir)?;
    let changes = ChangeFeed::default();
    let vault = Arc::new(Vault::new(dir.path()));
    let settings = EncryptedSettings::new(Arc::clone(&storage.preferences), Arc::clone(&vault));
    let settings = Arc::new(settings);
    let senses = senses::build(options);
    let editors = EditorRegistry::default();
    let blobs = Arc::clone(&storage.blobs);
    let sessions = SessionFiles { blobs, editors: Arc::new(editors.clone()) };
    let toolbox = toolbox(options, &senses, Some(sessions));
    let (memory, directory_listing) = (toolbox.memory(), toolbox.directory_listing());
    let (providers, local) = models(options);
    let logins = Arc::new(Logins::new(dir.path(), Arc::clone(&vault)));
    let keys = UserKeys { settings: settings.clone(), vault };
    let providers = providers.with_accounts(Arc::new(keys));
    let models: Arc<dyn Models> = Arc::new(providers);
    let vision = vision::build(options, &models, &senses.ocr);
    let rules = Arc::new(rules(options, &toolbox));
    let mcp = McpServers::start(mcp_settings(options, logins));
    let messages = sessions::index(dir.path(), senses.embedder_if_on());
    let (unattended_tools, searches) = (unattended_tools(&rules), searches(&rules, &*models));
    let node_token = options.store.as_ref().map(|_| NodeToken::default());
    let cluster = node_token.as_ref().map(|token| cluster(options, &storage, token)).transpose()?;
    let runtime = Runtime::new(RuntimeDeps {
        journal: Arc::clone(&storage.journal),
        leases: Arc::clone(&storage.leases),
        session_index: Arc::clone(&storage.sessions),
        drafts: Arc::clone(&storage.drafts),
        blobs: Arc::clone(&storage.blobs),
        undo: Arc::new(dir.undo(options.undo)?),
        models: Arc::clone(&models),
        tools: tools(&toolbox),
        tool_source: Some(Arc::new(mcp.clone())),
        workspaces: toolbox.workspaces(),
        memory: memory.clone(),
        clock: Arc::new(SystemClock),
        rules: Arc::clone(&rules),
        observers: vec![Arc::new(changes.clone())],
        cluster,
        timing: Timing::default(),
    });
    let archive = Archive::new(storage.journal.clone(), storage.sessions.clone(), rules);
    let RunOptions { active, lease, losses, .. } = options.runs;
    let limits = RunSettings { most_active: active, lease, most_losses: losses };
    let runs = RunService::new(storage.runs.clone(), Arc::new(SystemClock), limits);
    Ok(Assembly {
        runtime,
        storage,
        node_token,
        models,
        local,
        archive,
        senses,
        vision,
        has_vision_model: options.senses.vision.is_some(),
        voice: voice::build(options),
        memory,
        messages,
        directory_listing,
        mcp,
        changes,
        editors,
        settings,
        runs,
        unattended_tools,
        searches,
    })
}

/// The other nodes of the store.
fn cluster(options: &Options, storage: &Storage, token: &NodeToken) -> Result<Cluster> {
    let forward = Arc::new(HttpForward::new(token.clone())?);
    Ok(Cluster { nodes: Arc::clone(&storage.nodes), forward, lease: options.node.lease })
}

/// The secrets that must never be logged.
pub(crate) fn secrets(options: &Options) -> Vec<Secret> {
    let keys = options.providers.iter().filter_map(|provider| provider.api_key.clone());
    let search = options.search.key.clone();
    let bucket = options.objects.as_ref().and_then(|objects| objects.credentials.clone());
    let bucket = bucket.into_iter().flat_map(|it| [Some(it.secret_key), it.session_token]);
    let bucket = bucket.flatten().map(Secret::new);
    keys.chain(search)
        .chain(bucket)
        .chain(options.secrets.iter().cloned().map(Secret::new))
        .collect()
}

/// The models of the options, and those among them that run in this process.
pub(crate) fn models(options: &Options) -> (Providers, Option<Local>) {
    let providers = Providers::new(options.providers.clone());
    let providers = providers.with_fallback(options.fallback.clone());
    let Some(local) = options.local.clone().map(Local::new) else { return (providers, None) };
    (providers.with_in_process(quintet_local::PROVIDER, Arc::new(local.clone())), Some(local))
}

/// The parts of sessions that tools may use.
pub(crate) struct SessionFiles {
    /// The pictures of sessions.
    pub(crate) blobs: Arc<dyn Blobs>,
    /// The editors in which they are open.
    pub(crate) editors: Arc<dyn Editors>,
}

/// The tools of the options. Without `sessions` they work for no session of this daemon.
pub(crate) fn toolbox(
    options: &Options,
    senses: &Senses,
    sessions: Option<SessionFiles>,
) -> Toolbox {
    let supervisor = supervisor();
    let (verify, sandbox) = (options.verify_commands.clone(), options.sandbox.clone());
    let (fetch, search) = (options.fetch.clone(), options.search.engine.clone());
    let cache = options.data_dir.join("cache");
    let recall = options.memory.as_ref();
    let recall = recall.map(|memory| recall_of(memory, options.context_tokens, senses));
    let ocr = senses.ocr_if_on();
    let (blobs, editors) = sessions.map(|sessions| (sessions.blobs, sessions.editors)).unzip();
    Toolbox::new(Settings {
        supervisor,
        verify,
        sandbox,
        fetch,
        search,
        cache,
        recall,
        ocr,
        blobs,
        editors,
    })
}

/// The path of the running program, which supervises its commands. The file may be replaced while
/// the daemon runs; this path always means the running program.
pub(crate) fn supervisor() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}

/// The settings of MCP servers.
pub(crate) fn mcp_settings(options: &Options, logins: Arc<Logins>) -> McpSettings {
    McpSettings {
        supervisor: supervisor(),
        sandbox: options.sandbox.clone(),
        data_dir: options.data_dir.clone(),
        cache: options.data_dir.join("cache"),
        folder: options.mcp.folder.clone(),
        servers: options.mcp.servers.clone(),
        logins,
    }
}

/// The approval policy of the options; starting programs that a workspace defines always needs approval.
fn approval(options: &Options) -> ApprovalPolicy {
    let mut approval = options.approval.clone();
    approval.rules.push(Rule {
        kind: None,
        tool: Some(mcp::CONNECT.into()),
        path: None,
        command: None,
        action: Action::Ask,
        reason: None,
    });
    approval
}

/// The settings of memory.
fn recall_of(memory: &options::Memory, others: u64, senses: &Senses) -> MemorySettings {
    let options::Memory { settings, tokens, .. } = memory;
    let memory = MarkdownMemory::new(settings.clone(), Arc::new(SystemClock));
    let memory = Arc::new(match senses.embedder_if_on() {
        Some(embedder) => memory.with_embedder(embedder),
        None => memory,
    });
    let folder = quintet_memory::FOLDER;
    MemorySettings {
        memory,
        tokens: *tokens,
        folder,
        context_tokens: tokens.saturating_add(others),
    }
}

fn tools(toolbox: &Toolbox) -> HashMap<String, Arc<dyn Tool>> {
    let tool = |name: String| Some((name.clone(), toolbox.get(&name)?));
    toolbox.specs().iter().filter_map(|spec| tool(spec.name.clone())).collect()
}

/// The tools that models may be offered: the toolbox and, unless they are off, subagents.
fn offered(options: &Options, toolbox: &Toolbox) -> Vec<Arc<ToolSpec>> {
    let mut tools = toolbox.specs();
    if options.subagents.is_some() {
        tools.push(Arc::new(subagents::spec()));
    }
    tools
}

/// The tools that never need approval, whatever their arguments.
fn unattended_tools(rules: &Rules) -> Vec<String> {
    let tools = rules.tools.iter().filter(|tool| rules.verdict(tool, None) == Verdict::Allow);
    tools.map(|tool| tool.name.clone()).filter(|name| name != WEB_SEARCH).collect()
}

/// `Ok` if the default model can search the web, otherwise the reason why not.
fn searches(rules: &Rules, models: &dyn Models) -> Result<(), String> {
    let wanted = Toolset { daemon: Some(vec![WEB_SEARCH.into()]), ..Toolset::default() };
    let profile = models.profile(&rules.default_model);
    availability_unattended(rules, &wanted, (&rules.default_model, profile.as_ref())).by.map(|_| ())
}

/// The rules of sessions.
pub(crate) fn rules(options: &Options, toolbox: &Toolbox) -> Rules {
    let memory = options.memory.as_ref();
    Rules {
        approval: approval(options),
        review: options.review,
        context_tokens: options.context_tokens.saturating_add(memory.map_or(0, |it| it.tokens)),
        save_memory: memory.is_some_and(|memory| memory.save),
        verify: options.verify.clone(),
        limits: options.limits.clone(),
        recovery: options.recovery,
        client_grace: options.client_grace,
        subagents: options.subagents.unwrap_or_default(),
        tools: offered(options, toolbox),
        default_model: options.default_model.clone(),
    }
}
