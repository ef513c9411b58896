//! All servers: those of the configuration, of workspaces and of sessions; and the tools of a session.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use quintet_kernel::SessionId;
use quintet_kernel::dynamic_tools::DynamicTools;
use quintet_kernel::port::{SessionToolServers, Tool, ToolServer, ToolSource};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::allowed::Allowed;
use super::connection::{Connector, Era, Remedy, connect};
use super::launcher::{ServerFolder, ServerLauncher};
use super::login::{LoginKey, LoginStore};
use super::offered_tools::OfferedTools;
use super::server::{Core, OnChange, Server, Status};
use super::tool_list::ListedTool;
use super::workspace::{ConnectServers, WorkspaceServers};
use crate::sandbox::Sandbox;

/// How long a look at a workspace's file counts.
const RESCAN_INTERVAL: Duration = Duration::from_secs(2);
/// How many looks, and how many joined lists of tools, are kept.
const KEPT_LIMIT: usize = 1024;
/// How long servers have to end when the daemon does.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What servers are started with.
#[derive(Clone)]
pub struct McpSettings {
    /// The executable that has the supervisor's subcommand.
    pub supervisor: PathBuf,
    /// What the sandbox of servers is made from; which paths it opens and the network are up to each server.
    pub sandbox: Sandbox,
    /// The folder with the servers' own folders and the list of workspace servers that the user allowed.
    pub data_dir: PathBuf,
    /// The folder for data that may be deleted.
    pub cache: PathBuf,
    /// Where servers of the configuration work that have no sandbox.
    pub folder: PathBuf,
    /// The servers of the configuration.
    pub servers: Vec<ToolServer>,
    /// The logins at servers over HTTP.
    pub logins: Arc<dyn LoginStore>,
}

impl McpSettings {
    fn connector(&self) -> Connector {
        let (supervisor, sandbox) = (self.supervisor.clone(), self.sandbox.clone());
        let launcher = ServerLauncher::new(supervisor, sandbox, self.data_dir.clone());
        Connector { launcher, logins: Arc::clone(&self.logins) }
    }
}

impl fmt::Debug for McpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpSettings").field("servers", &self.servers).finish_non_exhaustive()
    }
}

/// What came of connecting to a server.
#[derive(Clone, Debug)]
pub struct ServerReport {
    /// What the server calls itself.
    pub title: Option<String>,
    /// The names and descriptions of its tools.
    pub tools: Vec<(String, String)>,
    /// What is wrong with tools that were left out.
    pub problems: Vec<String>,
}

/// Every MCP server, and their tools.
#[derive(Clone, Debug)]
pub struct McpServers(pub(super) Arc<Pool>);

/// What servers and the tools that change them share.
pub(super) struct Pool {
    connector: Connector,
    pub(super) allowed: Allowed,
    cache: PathBuf,
    pub(super) configured: Vec<Server>,
    workspaces: Mutex<HashMap<PathBuf, WorkspacePool>>,
    /// Servers that clients brought, by session.
    pub(super) sessions: Mutex<HashMap<SessionId, Vec<Arc<Server>>>>,
    /// Servers of workspaces and sessions by digest, so that equal ones are one.
    shared: Mutex<HashMap<String, Weak<Server>>>,
    /// The tools that searches of a session found.
    found: Mutex<HashMap<SessionId, BTreeSet<String>>>,
    offers: Mutex<HashMap<OfferedToolsKey, (u64, Arc<OfferedTools>)>>,
    /// Counted up with every change of any tool.
    generation: AtomicU64,
    /// Counted up with every change of what prompts there may be.
    pub(super) prompt_changes: watch::Sender<u64>,
    empty: Arc<OfferedTools>,
    stop: CancellationToken,
    tasks: TaskTracker,
    own: Weak<Pool>,
}

/// Sessions that see the same tools share them: what sets their workspace and themselves apart.
type OfferedToolsKey = (Option<PathBuf>, Option<SessionId>);

/// What is known of a workspace's file.
#[derive(Debug)]
struct WorkspacePool {
    looked: Instant,
    file: WorkspaceServers,
    /// Servers that a person allowed.
    running: Vec<Arc<Server>>,
    /// Servers that nobody allowed yet.
    pending: Vec<ToolServer>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("configured", &self.configured.len()).finish_non_exhaustive()
    }
}

impl McpServers {
    /// Begins to start the servers of the configuration, each by itself and in the background. Must be
    /// called inside a tokio runtime.
    pub fn start(settings: McpSettings) -> Self {
        let connector = settings.connector();
        let McpSettings { data_dir, cache, folder, servers, .. } = settings;
        let cache = cache.join("mcp");
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let pool = Arc::new_cyclic(|own: &Weak<Pool>| {
            let made = |server: ToolServer| {
                let known = load_list(&cache, &super::digest(&server, &folder));
                let folder = ServerFolder::Home(folder.clone());
                Server::new(server, folder, connector.clone(), known, &stop)
            };
            let configured: Vec<Server> = servers.into_iter().map(made).collect();
            Pool {
                connector,
                allowed: Allowed::new(&data_dir),
                cache,
                configured,
                workspaces: Mutex::default(),
                sessions: Mutex::default(),
                shared: Mutex::default(),
                found: Mutex::default(),
                offers: Mutex::default(),
                generation: AtomicU64::new(0),
                prompt_changes: watch::Sender::new(0),
                empty: Arc::default(),
                stop,
                tasks,
                own: Weak::clone(own),
            }
        });
        pool.configured.iter().for_each(|server| pool.spawn(server));
        Self(pool)
    }

    /// Connects to one server and lists its tools; nothing of it is left afterwards. Fails with the reason.
    pub async fn probe(
        server: ToolServer,
        folder: ServerFolder,
        settings: &McpSettings,
        within: Duration,
    ) -> Result<ServerReport, String> {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let server = Server::new(server, folder, settings.connector(), Vec::new(), &stop);
        let core = Arc::clone(server.core());
        tasks.spawn(Arc::clone(&core).run(Arc::new(Ignored)));
        let status = core.settled(within).await;
        let report = match status {
            Status::Ready(connection) => Ok(ServerReport {
                title: connection.title(),
                tools: core.tools().iter().map(described).collect(),
                problems: core.problems(),
            }),
            Status::Failed { reason, .. } => Err(reason),
            Status::Starting | Status::Stopped => {
                Err(format!("no answer within {}s", within.as_secs()))
            }
        };
        stop.cancel();
        tasks.close();
        let _late = timeout(CLOSE_TIMEOUT, tasks.wait()).await;
        report
    }

    /// True if a server over HTTP answers, within that time, that it wants a login. Processes are not started.
    pub async fn needs_login(
        server: &ToolServer,
        logins: Arc<dyn LoginStore>,
        within: Duration,
    ) -> bool {
        if LoginKey::of(server).is_none() {
            return false;
        }
        let nowhere = PathBuf::new;
        let launcher = ServerLauncher::new(nowhere(), Sandbox::default(), nowhere());
        let (connector, folder) = (Connector { launcher, logins }, ServerFolder::Home(nowhere()));
        let connected = connect(server, &folder, &connector, Era::Initialize);
        let failed = timeout(within, connected).await.map(|connected| connected.err());
        failed.is_ok_and(|why| why.is_some_and(|why| why.remedy == Remedy::Login))
    }

    /// Ends all servers, and waits for that for a moment; what takes longer is ended by its supervisor.
    pub async fn close(&self) {
        self.0.stop.cancel();
        self.0.tasks.close();
        if timeout(CLOSE_TIMEOUT, self.0.tasks.wait()).await.is_err() {
            tracing::warn!("some MCP servers take longer to end");
        }
    }
}

fn described(tool: &ListedTool) -> (String, String) {
    (tool.name.clone(), tool.description.clone())
}

/// Ignores changes, for a server whose tools are not used.
struct Ignored;

impl OnChange for Ignored {
    fn tools_changed(&self, _server: &Core) {}

    fn prompts_changed(&self) {}
}

impl OnChange for Pool {
    fn tools_changed(&self, server: &Core) {
        self.generation.fetch_add(1, Ordering::Release);
        let (path, tools) = (self.cache.join(&server.digest), server.tools());
        // A list that is not kept is asked for again.
        self.tasks.spawn_blocking(move || store_list(&path, &tools));
    }

    fn prompts_changed(&self) {
        self.prompt_changes.send_modify(|changes| *changes += 1);
    }
}

/// The tools that a server had last time: its slow start then keeps them from no turn, and a call that
/// waited for an answer when the daemon ended finds its tool.
fn load_list(cache: &Path, digest: &str) -> Vec<ListedTool> {
    let text = std::fs::read(cache.join(digest)).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn store_list(path: &Path, tools: &[ListedTool]) {
    let written = serde_json::to_vec(tools).map_err(std::io::Error::from).and_then(|text| {
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let next = path.with_extension("next");
        std::fs::write(&next, text)?;
        std::fs::rename(next, path)
    });
    if let Err(error) = written {
        tracing::debug!(%error, "the tools of an MCP server are not kept");
    }
}

/// A folder by the name that it has without links: what is allowed counts there, however one got there.
pub(super) fn real(folder: &Path) -> PathBuf {
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned())
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    fn spawn(&self, server: &Server) {
        if let Some(own) = self.own.upgrade() {
            self.tasks.spawn(Arc::clone(server.core()).run(own));
        }
    }

    /// The sandbox that servers are started in.
    pub(super) fn sandbox(&self) -> &Sandbox {
        self.connector.launcher.sandbox()
    }

    fn changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
        self.prompts_changed();
    }

    /// The server of a definition: the one that runs already, or a new one.
    fn server(&self, definition: ToolServer, folder: &Path) -> Arc<Server> {
        let digest = super::digest(&definition, folder);
        let mut shared = lock(&self.shared);
        if let Some(server) = shared.get(&digest).and_then(Weak::upgrade) {
            return server;
        }
        let server = Server::new(
            definition,
            ServerFolder::Workspace(folder.to_owned()),
            self.connector.clone(),
            load_list(&self.cache, &digest),
            &self.stop,
        );
        let server = Arc::new(server);
        shared.retain(|_, server| server.strong_count() > 0);
        shared.insert(digest, Arc::downgrade(&server));
        drop(shared);
        self.spawn(&server);
        server
    }

    /// Lists tools for a session that a search found.
    pub(super) fn list_for(&self, session: &SessionId, names: impl Iterator<Item = String>) {
        let mut all = lock(&self.found);
        if all.len() >= KEPT_LIMIT && !all.contains_key(session) {
            all.clear();
        }
        all.entry(session.clone()).or_default().extend(names);
        drop(all);
        self.changed();
    }

    /// Records that the user allowed these servers, and starts them if the workspace still names them.
    pub(super) async fn allow(
        &self,
        workspace: &Path,
        servers: &[ToolServer],
    ) -> Result<Vec<Arc<Core>>, String> {
        let Some(own) = self.own.upgrade() else { return Ok(Vec::new()) };
        let (workspace, servers) = (workspace.to_owned(), servers.to_vec());
        let allowed =
            tokio::task::spawn_blocking(move || own.allow_now(&workspace, &servers)).await;
        let allowed = allowed.map_err(|error| error.to_string())?;
        allowed
            .map_err(|error| format!("it could not be written down that this is allowed: {error}"))
    }

    fn allow_now(&self, workspace: &Path, servers: &[ToolServer]) -> io::Result<Vec<Arc<Core>>> {
        let folder = real(workspace);
        let digests: BTreeSet<String> =
            servers.iter().map(|server| super::digest(server, &folder)).collect();
        self.allowed.add(digests.clone())?;
        // The servers are found again in the file as it is now.
        self.look(workspace);
        let cores = self.running_in(workspace).into_iter();
        Ok(cores.filter(|core| digests.contains(&core.digest)).collect())
    }

    /// Takes back what was allowed, and ends the workspace's servers that ran by it.
    pub(super) fn disallow_now(&self, workspace: &Path, digests: &[String]) -> io::Result<()> {
        self.allowed.remove(digests)?;
        self.look(workspace);
        Ok(())
    }

    /// The servers of a workspace that were started.
    pub(super) fn running_in(&self, workspace: &Path) -> Vec<Arc<Core>> {
        let workspaces = lock(&self.workspaces);
        let running = workspaces.get(workspace).map(|known| known.running.clone());
        running.unwrap_or_default().iter().map(|server| Arc::clone(server.core())).collect()
    }

    /// Looks at a workspace's file, and starts what is allowed and ends what is gone.
    fn look(&self, workspace: &Path) {
        let (file, folder) =
            (WorkspaceServers::read(workspace).unwrap_or_default(), real(workspace));
        let allowed = if file.servers.is_empty() { BTreeSet::new() } else { self.allowed.read() };
        let is_allowed = |server: &ToolServer| allowed.contains(&super::digest(server, &folder));
        let (running, pending): (Vec<_>, Vec<_>) =
            file.servers.iter().cloned().partition(is_allowed);
        let running: Vec<_> =
            running.into_iter().map(|server| self.server(server, &folder)).collect();
        let mut workspaces = lock(&self.workspaces);
        let known = workspaces.get(workspace);
        let digests = |servers: &[Arc<Server>]| {
            servers.iter().map(|it| it.core().digest.clone()).collect::<Vec<_>>()
        };
        let same = known.map_or(running.is_empty() && pending.is_empty(), |known| {
            known.pending == pending && digests(&known.running) == digests(&running)
        });
        if known.is_none_or(|known| known.file.problems != file.problems) {
            for problem in &file.problems {
                tracing::warn!(workspace = %workspace.display(), "{problem}");
            }
        }
        if workspaces.len() >= KEPT_LIMIT {
            workspaces.retain(|_, known| !known.running.is_empty());
        }
        let looked = Instant::now();
        let new = WorkspacePool { looked, file, running, pending };
        let old = workspaces.insert(workspace.to_owned(), new);
        drop(workspaces);
        // Servers that nobody uses any more end here.
        drop(old);
        if !same {
            self.changed();
        }
    }

    /// Has a workspace's file looked at if the last look is too old.
    pub(super) fn refresh(&self, workspace: &Path) {
        let mut workspaces = lock(&self.workspaces);
        match workspaces.get_mut(workspace) {
            Some(known) if known.looked.elapsed() < RESCAN_INTERVAL => return,
            Some(known) => known.looked = Instant::now(),
            None => {
                let (file, running, pending) = Default::default();
                let looked = Instant::now();
                workspaces
                    .insert(workspace.to_owned(), WorkspacePool { looked, file, running, pending });
            }
        }
        drop(workspaces);
        let Some(own) = self.own.upgrade().filter(|own| !own.tasks.is_closed()) else { return };
        let workspace = workspace.to_owned();
        self.tasks.spawn_blocking(move || own.look(&workspace));
    }

    fn offer(&self, session: &SessionId, workspace: &Path) -> Arc<OfferedTools> {
        if workspace.as_os_str().is_empty() {
            return Arc::clone(&self.empty);
        }
        self.refresh(workspace);
        let generation = self.generation.load(Ordering::Acquire);
        let own = {
            let workspaces = lock(&self.workspaces);
            let known = workspaces.get(workspace);
            known.is_some_and(|known| !known.running.is_empty() || !known.pending.is_empty())
        };
        let personal =
            lock(&self.sessions).contains_key(session) || lock(&self.found).contains_key(session);
        if self.configured.is_empty() && !own && !personal {
            return Arc::clone(&self.empty);
        }
        let key = (own.then(|| workspace.to_owned()), personal.then(|| session.clone()));
        if let Some((of, offer)) = lock(&self.offers).get(&key)
            && *of == generation
        {
            return Arc::clone(offer);
        }
        let offer = Arc::new(self.join_tools(session, workspace));
        let mut offers = lock(&self.offers);
        if offers.len() >= KEPT_LIMIT {
            offers.clear();
        }
        offers.insert(key, (generation, Arc::clone(&offer)));
        offer
    }

    /// The servers of a session that works in this folder.
    pub(super) fn servers(&self, session: Option<&SessionId>, workspace: &Path) -> Vec<Arc<Core>> {
        let core = |server: &Server| Arc::clone(server.core());
        let mut servers: Vec<Arc<Core>> = self.configured.iter().map(core).collect();
        if let Some(known) = lock(&self.workspaces).get(workspace) {
            servers.extend(known.running.iter().map(|server| core(server)));
        }
        let sessions = lock(&self.sessions);
        if let Some(brought) = session.and_then(|session| sessions.get(session)) {
            servers.extend(brought.iter().map(|server| core(server)));
        }
        servers
    }

    fn join_tools(&self, session: &SessionId, workspace: &Path) -> OfferedTools {
        let servers = self.servers(Some(session), workspace);
        let mut connect = None;
        if let Some(known) = lock(&self.workspaces).get(workspace) {
            let pending = Some(known.pending.clone()).filter(|pending| !pending.is_empty());
            connect = pending.map(|pending| {
                let pool = Weak::clone(&self.own);
                Arc::new(ConnectServers::new(workspace.to_owned(), pending, pool)) as Arc<dyn Tool>
            });
        }
        let found = lock(&self.found).get(session).cloned().unwrap_or_default();
        OfferedTools::new(servers, &found, connect, Weak::clone(&self.own))
    }
}

impl ToolSource for McpServers {
    fn tools(&self, session: &SessionId, workspace: &Path) -> Arc<DynamicTools> {
        Arc::clone(&self.0.offer(session, workspace).dynamic)
    }

    fn find(&self, session: &SessionId, workspace: &Path, name: &str) -> Option<Arc<dyn Tool>> {
        self.0.offer(session, workspace).find(name)
    }
}

impl SessionToolServers for McpServers {
    fn join(&self, session: &SessionId, workspace: &Path, servers: Vec<ToolServer>) {
        let servers: Vec<_> =
            servers.into_iter().map(|server| self.0.server(server, workspace)).collect();
        let mut sessions = lock(&self.0.sessions);
        let old = if servers.is_empty() {
            sessions.remove(session)
        } else {
            sessions.insert(session.clone(), servers)
        };
        drop(sessions);
        // Servers that no session uses any more end here.
        drop(old);
        self.0.changed();
    }
}
