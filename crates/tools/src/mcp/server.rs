//! One server: connected in the background, connected again with growing delays when it fails, and told
//! to connect at once when a call needs it or a person has logged in.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use quintet_kernel::port::{ToolServer, ToolTransport};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::connection::{Connection, Connector, Era, Opened, Remedy, Unconnected, connect};
use super::launcher::ServerFolder;
use super::login::LoginKey;
use super::process::Ended;
use super::prompt::{self, ListedPrompt};
use super::tool_list::{self, ListedTool};

/// How long a server may take to start: package runners download first.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a call waits for a server that is starting.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
/// The delay after the first failure; doubled after each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
const DELAY_LIMIT: Duration = Duration::from_secs(300);
/// After a connection of this length, the next failure counts as the first, with the shortest delay.
const STEADY_AFTER: Duration = Duration::from_secs(60);
/// How often to check whether the user has logged in, while a server waits for that.
const LOGIN_INTERVAL: Duration = Duration::from_secs(1);

/// A server and its connection, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Server {
    core: Arc<Core>,
    _stop: DropGuard,
}

/// What a server's task shares with its users.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) definition: ToolServer,
    /// Names the definition.
    pub(super) digest: String,
    /// Where its process works.
    folder: ServerFolder,
    connector: Connector,
    status: watch::Sender<Status>,
    /// A call needs the server now.
    wanted: Notify,
    /// A call was refused for want of a login.
    login_wanted: Notify,
    tools: Mutex<Arc<Vec<ListedTool>>>,
    problems: Mutex<Vec<String>>,
    prompts: Mutex<Vec<ListedPrompt>>,
    stop: CancellationToken,
}

/// Where a server stands.
#[derive(Clone, Debug)]
pub(super) enum Status {
    Starting,
    Ready(Arc<Connection>),
    /// The attempt of this number failed.
    Failed {
        attempt: u64,
        reason: String,
    },
    Stopped,
}

/// Is told that the tools or the prompts of a server are others now.
pub(super) trait OnChange: Send + Sync {
    fn tools_changed(&self, server: &Core);
    fn prompts_changed(&self);
}

impl Server {
    /// A server that nobody has connected to yet, with the tools that it had last time, if that is known.
    /// [`Core::run`] is to be spawned.
    pub(super) fn new(
        definition: ToolServer,
        folder: ServerFolder,
        connector: Connector,
        known: Vec<ListedTool>,
        stop: &CancellationToken,
    ) -> Self {
        let digest = super::digest(&definition, folder.path());
        let stop = stop.child_token();
        let core = Arc::new(Core {
            definition,
            digest,
            folder,
            connector,
            status: watch::Sender::new(Status::Starting),
            wanted: Notify::new(),
            login_wanted: Notify::new(),
            tools: Mutex::new(Arc::new(known)),
            problems: Mutex::default(),
            prompts: Mutex::default(),
            stop: stop.clone(),
        });
        Self { core, _stop: stop.drop_guard() }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Core {
    pub(super) fn name(&self) -> &str {
        &self.definition.name
    }

    /// True if the server is a process of this machine that runs without a sandbox.
    pub(super) fn is_unconfined(&self) -> bool {
        match &self.definition.transport {
            ToolTransport::Stdio { sandbox, .. } => !self.connector.launcher.confines(sandbox),
            ToolTransport::Http { .. } => false,
        }
    }

    /// The tools that the server listed last.
    pub(super) fn tools(&self) -> Arc<Vec<ListedTool>> {
        Arc::clone(&self.tools.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is wrong with tools that were left out.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The prompts that the server listed last.
    pub(super) fn prompts(&self) -> Vec<ListedPrompt> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn status(&self) -> Status {
        self.status.borrow().clone()
    }

    /// The connection, made now if need be. Fails with the reason, for the model.
    pub(super) async fn ready(&self) -> Result<Arc<Connection>, String> {
        let mut status = self.status.subscribe();
        let seen = match &*status.borrow_and_update() {
            Status::Ready(connection) if !connection.is_closed() => {
                return Ok(Arc::clone(connection));
            }
            Status::Failed { attempt, .. } => {
                self.wanted.notify_one();
                *attempt
            }
            Status::Ready(_) | Status::Starting | Status::Stopped => 0,
        };
        let settled = |status: &Status| match status {
            Status::Ready(connection) => !connection.is_closed(),
            Status::Failed { attempt, .. } => *attempt > seen,
            Status::Stopped => true,
            Status::Starting => false,
        };
        let name = self.name();
        let waited = timeout(READY_TIMEOUT, status.wait_for(settled)).await;
        match waited.map(|settled| settled.map(|status| status.clone())) {
            Ok(Ok(Status::Ready(connection))) => Ok(connection),
            Ok(Ok(Status::Failed { reason, .. })) => {
                Err(format!("the MCP server {name} is not there: {reason}"))
            }
            Ok(_) => Err(format!("the MCP server {name} was stopped")),
            Err(_) => Err(format!(
                "the MCP server {name} has been starting for {}s; try again later",
                READY_TIMEOUT.as_secs()
            )),
        }
    }

    /// Waits until the server has answered or failed; gives what came of it.
    pub(super) async fn settled(&self, within: Duration) -> Status {
        let mut status = self.status.subscribe();
        let settled = |status: &Status| !matches!(status, Status::Starting);
        let _late = timeout(within, status.wait_for(settled)).await;
        self.status()
    }

    /// Keeps the server connected until it is stopped.
    pub(super) async fn run(self: Arc<Self>, on_change: Arc<dyn OnChange>) {
        let (mut attempt, mut delay, mut era) = (0, FIRST_DELAY, Era::Initialize);
        while !self.stop.is_cancelled() {
            attempt += 1;
            self.status.send_replace(Status::Starting);
            let (began, login) = (Instant::now(), self.login_written());
            let opened = tokio::select! {
                opened = timeout(START_TIMEOUT, self.open(&mut era)) => opened,
                () = self.stop.cancelled() => break,
            };
            let retry = |reason| Unconnected { reason, remedy: Remedy::Retry };
            let Unconnected { reason, remedy } = match opened {
                Ok(Ok((opened, tools))) => {
                    self.publish(tools, &*on_change).await;
                    retry(self.serve(opened, era, login, &*on_change).await)
                }
                Ok(Err(unconnected)) => unconnected,
                Err(_) => retry(format!("no answer within {}s", START_TIMEOUT.as_secs())),
            };
            if self.stop.is_cancelled() {
                break;
            }
            if began.elapsed() > STEADY_AFTER {
                delay = FIRST_DELAY;
            }
            tracing::warn!(server = self.name(), "MCP server: {reason}");
            self.status.send_replace(Status::Failed { attempt, reason });
            tokio::select! {
                () = sleep(delay) => {}
                () = self.wanted.notified() => {}
                () = self.logged_in(login), if remedy == Remedy::Login => delay = FIRST_DELAY,
                () = self.stop.cancelled() => break,
            }
            delay = (delay * 2).min(DELAY_LIMIT);
        }
        self.status.send_replace(Status::Stopped);
    }

    /// Connects and lists the tools; tries the other era where the server does not know this one.
    async fn open(&self, era: &mut Era) -> Result<(Opened, Vec<serde_json::Value>), Unconnected> {
        let connected = match self.connect(*era).await {
            Err(Unconnected { remedy: Remedy::OtherEra, reason }) => {
                let other = match era {
                    Era::Initialize => Era::Discover,
                    Era::Discover => Era::Initialize,
                };
                let connected = self.connect(other).await.map_err(|unconnected| {
                    let remedy = unconnected.remedy;
                    if remedy == Remedy::Login {
                        unconnected
                    } else {
                        Unconnected { reason, remedy }
                    }
                })?;
                *era = other;
                connected
            }
            connected => connected?,
        };
        let tools = connected.connection.list_tools(&self.definition).await?;
        Ok((connected, tools))
    }

    async fn connect(&self, era: Era) -> Result<Opened, Unconnected> {
        connect(&self.definition, &self.folder, &self.connector, era).await
    }

    /// When the person's login at this server was written last.
    fn login_written(&self) -> Option<SystemTime> {
        self.connector.logins.written(&LoginKey::of(&self.definition)?)
    }

    /// Resolves when there is another login than the one of that time.
    async fn logged_in(&self, before: Option<SystemTime>) {
        loop {
            sleep(LOGIN_INTERVAL).await;
            let now = self.login_written();
            if now.is_some() && now != before {
                return;
            }
        }
    }

    /// Has the server connected again once the person has logged in.
    pub(super) fn await_login(&self) {
        self.login_wanted.notify_one();
    }

    /// Serves an open connection, which was made with the login of that time, until it ends; gives the reason
    /// why it did.
    async fn serve(
        &self,
        opened: Opened,
        era: Era,
        login: Option<SystemTime>,
        on_change: &dyn OnChange,
    ) -> String {
        let Opened { connection, service, process } = opened;
        self.status.send_replace(Status::Ready(Arc::clone(&connection)));
        let cancel = service.cancellation_token();
        let mut ended = Box::pin(service.waiting());
        let mut subscribed = Box::pin(connection.subscribe(era));
        let mut look = Box::pin(self.logged_in(login));
        let mut waits_for_login = false;
        loop {
            tokio::select! {
                _ = &mut ended => break,
                () = self.login_wanted.notified() => waits_for_login = true,
                () = &mut look, if waits_for_login => {
                    self.wanted.notify_one();
                    cancel.cancel();
                    let _ended = ended.await;
                    break;
                }
                () = self.stop.cancelled() => {
                    cancel.cancel();
                    // The end of the connection closes the server's input.
                    let _ended = ended.await;
                    break;
                }
                never = &mut subscribed => match never {},
                () = connection.prompts_changed() => tokio::select! {
                    () = self.list_prompts(&connection, on_change) => {}
                    () = self.stop.cancelled() => {}
                },
                () = connection.tools_changed() => tokio::select! {
                    tools = connection.list_tools(&self.definition) => match tools {
                        Ok(tools) => self.publish(tools, on_change).await,
                        Err(Unconnected { reason, .. }) => {
                            tracing::warn!(server = self.name(), "MCP server: {reason}");
                        }
                    },
                    () = self.stop.cancelled() => {}
                }
            }
        }
        let Some(process) = process else { return "the connection was closed".to_owned() };
        let Ended { code, details } = process.ended().await;
        let code = code.map_or(String::new(), |code| format!(" with exit code {code}"));
        format!("the process ended{code}{details}")
    }

    async fn list_prompts(&self, connection: &Connection, on_change: &dyn OnChange) {
        let prompts = match connection.list_prompts(&self.definition).await {
            Ok(listed) => prompt::read(&listed),
            Err(Unconnected { reason, .. }) => {
                return tracing::warn!(server = self.name(), "MCP server: {reason}");
            }
        };
        let changed = self.prompts() != prompts;
        *self.prompts.lock().unwrap_or_else(PoisonError::into_inner) = prompts;
        if changed {
            on_change.prompts_changed();
        }
    }

    async fn publish(&self, tools: Vec<serde_json::Value>, on_change: &dyn OnChange) {
        // Reading a schema takes milliseconds, and there may be hundreds.
        let read = tokio::task::spawn_blocking(|| tool_list::read(tools)).await;
        let (good, bad) = read.unwrap_or_else(|error| (Vec::new(), vec![error.to_string()]));
        for problem in &bad {
            tracing::warn!(server = self.name(), "a tool of an MCP server is left out: {problem}");
        }
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = bad;
        let changed = *self.tools() != good;
        *self.tools.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(good);
        if changed {
            on_change.tools_changed(self);
        }
    }
}
