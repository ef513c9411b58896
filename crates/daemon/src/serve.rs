//! Runs the daemon: binds, says so, serves, and shuts down in order.

mod agent;
mod signals;
mod tasks;
mod terminal;
mod windie;

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use axum::response::Response;
use futures_util::future::try_join_all;
use quintet_dialects::harness::{self, Ports, Settings};
use quintet_dialects::jarvis;
use quintet_dialects::projection::{self, Sources};
use quintet_dialects::transport::access::{Access, Denied, Token};
use quintet_dialects::transport::listener::serve as serve_http;
use quintet_dialects::transport::uds::Socket;
use quintet_kernel::port::{ERASED, Preferences as _, Sessions};
use quintet_runtime::SystemStamps;
use quintet_tools::sandbox::{self, Mode};
use rustix::process::Signal;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::assemble::{self, Assembly, assemble, secrets};
use crate::audit::Audit;
use crate::cli::Flags;
use crate::options::{self, Jarvis, Options};
use crate::{open_files, telemetry};

use signals::{Signals, exit_code};
use tasks::Tasks;

/// How long sessions have to make everything durable: longer than they wait for a tool to end.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);
/// How long connections may take to end once sessions are parked.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the whole shutdown may take, but for blocking calls that are under way.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(9);
/// How long blocking calls may take to end after that, such as a read on a disk that hangs.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(1);

/// `quintet serve`.
pub(crate) fn main(flags: &Flags, dev: bool) -> Result<()> {
    let filter = options::environment().into_iter().find(|(name, _)| name == "QUINTET_LOG");
    telemetry::start(flags.log_format, filter.as_ref().map(|(_, value)| value.as_str()));
    let mut options = options::read(flags)?;
    if dev {
        options.agent.socket = options.agent.socket.dev();
        options.agent.health = options.agent.health.dev();
    }
    open_files::raise_limit();
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = threads.block_on(run(&options));
    threads.shutdown_timeout(BLOCKING_TIMEOUT);
    ended
}

async fn run(options: &Options) -> Result<()> {
    let mut signals = Signals::listen()?;
    for advice in &options.advice {
        tracing::warn!("{advice}");
    }
    for (what, mend) in options.complaints() {
        tracing::warn!("{what}; {mend}");
    }
    warn_of_gaps(options.sandbox.mode);
    let assembly = assemble(options)?;
    let writer_ended = assembly.store.writer_ended();
    encrypt_old_keys(&assembly).await;
    forget_erased(&assembly, &options.data_dir).await;
    let bound = Bound::new(options).await?;
    let woken = assembly.runtime.recover().await?;
    if woken > 0 {
        tracing::info!(sessions = woken, "going on with what was left open");
    }
    announce(&bound)?;
    let mut daemon = Daemon::start(options, assembly, bound);
    let ended = tokio::select! {
        _ = signals.next() => Ok(()),
        failure = daemon.failed() => Err(failure),
        () = writer_ended => Err(anyhow!(
            "the thread that writes the database is gone: nothing can be kept any more"
        )),
    };
    if let Err(failure) = &ended {
        tracing::error!("{failure:#}");
    }
    tracing::info!("shutting down");
    if let Some(code) = hurried(daemon.stop(), signals.next(), SHUTDOWN_TIMEOUT).await {
        // Returning would wait for threads that hang. Everything that was acknowledged is durable, and
        // the next start goes on with the rest.
        process::exit(code);
    }
    ended
}

/// Forgets which sessions were erased, unless there is a session tree that may still have them.
async fn forget_erased(assembly: &Assembly, data_dir: &Path) {
    if assembly.tree.is_some() || assemble::tree_root(data_dir).exists() {
        return;
    }
    let store = &assembly.store;
    let forget = async {
        let names = store.names(ERASED).await?;
        let forget = |name: &String| store.prefer(ERASED, name, Value::Null);
        try_join_all(names.iter().map(forget)).await
    };
    if let Err(error) = forget.await {
        tracing::warn!(%error, "the list of erased sessions was not cleared");
    }
}

/// Encrypts keys of an older version. One that could not be is reported to its user when it is used.
async fn encrypt_old_keys(assembly: &Assembly) {
    let settings = &assembly.front_ends.preferences;
    if let Err(error) = settings.encrypt_old_keys(&assembly.store).await {
        tracing::error!(%error, "users' keys of an older version stay in the database as they are");
    }
}

/// Waits for the end of a shutdown. Gives the exit code if somebody sends another signal or it takes
/// too long; the process is to end then. What the shutdown still owns is not dropped, because that may
/// wait for a disk that hangs.
async fn hurried(
    shutdown: impl Future<Output = ()>,
    signal: impl Future<Output = Signal>,
    limit: Duration,
) -> Option<i32> {
    let mut shutdown = Box::pin(shutdown);
    let code = tokio::select! {
        () = &mut shutdown => return None,
        signal = signal => exit_code(signal),
        () = tokio::time::sleep(limit) => {
            tracing::error!("the shutdown takes too long and is given up");
            1
        }
    };
    std::mem::forget(shutdown);
    Some(code)
}

/// Says what the kernel cannot keep commands from.
fn warn_of_gaps(mode: Mode) {
    if mode == Mode::Off {
        return tracing::warn!("sandbox.mode is off: commands can do all that you can");
    }
    for gap in sandbox::probe().missing() {
        tracing::warn!("the sandbox has a gap: {gap}");
    }
}

/// Where protocols are listened for.
struct Bound {
    harness: Option<TcpListener>,
    jarvis: Option<TcpListener>,
    agent: Option<TcpListener>,
    agent_health: Option<TcpListener>,
    windie: Option<TcpListener>,
    terminal: Option<Socket>,
}

impl Bound {
    async fn new(options: &Options) -> Result<Self> {
        let jarvis = &options.jarvis;
        Ok(Self {
            harness: bind("harness", options.harness).await?,
            jarvis: match bind("jarvis", jarvis.address).await {
                Err(error) if !jarvis.wanted => {
                    tracing::warn!("{error:#}; desktops are not served");
                    None
                }
                bound => bound?,
            },
            agent: agent::bind("agent", options.agent.socket).await?,
            agent_health: agent::bind("agent_health", options.agent.health).await?,
            windie: agent::bind("windie", options.windie.socket).await?,
            terminal: options.terminal.as_ref().map(terminal::bind).transpose()?,
        })
    }
}

async fn bind(protocol: &str, address: Option<SocketAddr>) -> Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await;
    bound.map(Some).with_context(|| format!("listen.{protocol} = {address}"))
}

/// The one line on standard output, once every listener is bound.
fn announce(bound: &Bound) -> Result<()> {
    let mut listeners = serde_json::Map::new();
    for (protocol, scheme, listener) in [
        ("harness", "http", &bound.harness),
        ("jarvis", "http", &bound.jarvis),
        ("agent", "ws", &bound.agent),
        ("agent_health", "http", &bound.agent_health),
        ("windie", "http", &bound.windie),
    ] {
        if let Some(listener) = listener {
            let address = format!("{scheme}://{}", listener.local_addr()?);
            listeners.insert(protocol.into(), address.into());
        }
    }
    if let Some(socket) = &bound.terminal {
        listeners.insert("terminal".into(), socket.path().to_string_lossy().into());
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{{\"ready\":true,\"listeners\":{}}}", Value::Object(listeners))?;
    Ok(stdout.flush()?)
}

struct Daemon {
    assembly: Assembly,
    /// Nothing new comes in any more.
    closing: CancellationToken,
    /// Sessions are parked, so projections can come to their end.
    parked: CancellationToken,
    listeners: Tasks,
    followers: Tasks,
}

impl Daemon {
    fn start(options: &Options, assembly: Assembly, bound: Bound) -> Self {
        let (closing, parked) = (CancellationToken::new(), CancellationToken::new());
        let mut listeners = Tasks::default();
        let mut followers = projections(options, &assembly, &parked);
        let sessions: Arc<dyn Sessions> = Arc::new(assembly.runtime.clone());
        if let Some(listener) = bound.jarvis {
            let router = desktop(options, &assembly, Arc::clone(&sessions));
            let access = access(options, &options.jarvis.hosts, jarvis::refuse);
            listeners.spawn("listen.jarvis", serve_http(listener, router, access, closing.clone()));
        }
        let (speaks, tells) = agent::routers(options, &assembly, &closing);
        let health = access(options, &options.agent.hosts, quintet_dialects::agent::refuse);
        if let Some(listener) = bound.agent {
            let access =
                Access { own: options.agent.token.clone().map(Token::new), ..health.clone() };
            listeners.spawn("listen.agent", serve_http(listener, speaks, access, closing.clone()));
        }
        if let Some(listener) = bound.agent_health {
            let serve = serve_http(listener, tells, health, closing.clone());
            listeners.spawn("listen.agent_health", serve);
        }
        if let Some(listener) = bound.windie {
            let (ports, settings) = windie::parts(options, &assembly, &closing);
            let sweep = quintet_dialects::windie::sweep(ports.clone(), settings.clone());
            followers.spawn("the artifacts' sweep", sweep);
            let access = access(options, &options.windie.hosts, quintet_dialects::windie::refuse);
            let access = Access { asks_itself: settings.asks_itself(), ..access };
            let router = quintet_dialects::windie::service(ports, settings);
            listeners.spawn("listen.windie", serve_http(listener, router, access, closing.clone()));
        }
        if let (Some(socket), Some(settings)) = (bound.terminal, &options.terminal) {
            let serve = terminal::run(socket, options, settings, &assembly, &closing);
            listeners.spawn("listen.terminal", serve);
        }
        if let Some(listener) = bound.harness {
            let router = harness::router(ports(&assembly, sessions), settings(options));
            let own = options.harness_token.clone().map(Token::new);
            let access = access(options, &options.harness_hosts, harness::refuse);
            let serve = serve_http(listener, router, Access { own, ..access }, closing.clone());
            listeners.spawn("listen.harness", serve);
        }
        Self { assembly, closing, parked, listeners, followers }
    }

    /// Waits until something ends that should run as long as the daemon.
    async fn failed(&mut self) -> anyhow::Error {
        tokio::select! {
            failure = self.listeners.failed() => failure,
            failure = self.followers.failed() => failure,
        }
    }

    /// No new turns, running ones parked durably, everybody told, copies brought up to date.
    async fn stop(mut self) {
        self.closing.cancel();
        self.assembly.runtime.close(CLOSE_TIMEOUT).await;
        self.parked.cancel();
        let local = self.assembly.local.take();
        let unloaded = tokio::task::spawn_blocking(move || local.map(|local| local.close()));
        let drained = tokio::time::timeout(DRAIN_TIMEOUT, self.listeners.ended());
        let (_, (), drained) = tokio::join!(unloaded, self.followers.ended(), drained);
        if drained.is_err() {
            tracing::warn!("some connections did not end and are dropped");
        }
        drop_aside(self).await;
    }
}

/// Drops something where it may block: the last owner of the store waits for the disk, and signals and
/// the time limit must be noticed meanwhile.
async fn drop_aside(value: impl Send + 'static) {
    // Only a panic of a destructor is an error here, and it was logged.
    let _ = tokio::task::spawn_blocking(move || drop(value)).await;
}

/// Starts the copies of sessions that are kept behind the journal.
fn projections(options: &Options, assembly: &Assembly, parked: &CancellationToken) -> Tasks {
    let mut tasks = Tasks::default();
    let sources = || Sources {
        changes: assembly.changes.subscribe(),
        sessions: Arc::new(assembly.runtime.clone()),
        stamps: Arc::new(SystemStamps),
        stop: parked.clone(),
    };
    if let Some(tree) = assembly.tree.clone() {
        let (sources, notes) = (sources(), assembly.store.clone());
        tasks.spawn("the session tree", async {
            projection::run(tree.projection(notes).await, sources).await;
        });
    }
    if options.audit {
        let (sources, sessions) = (sources(), Arc::new(assembly.runtime.clone()));
        let (folder, secrets) = (options.data_dir.clone(), secrets(options));
        let positions = assembly.store.clone();
        let stop = parked.clone();
        tasks.spawn("the audit log", async move {
            match Audit::open(&folder, secrets, sessions, positions).await {
                Ok(audit) => projection::run(audit, sources).await,
                Err(error) => {
                    tracing::error!("the audit log cannot be written: {error:#}");
                    stop.cancelled().await;
                }
            }
        });
    }
    tasks
}

/// What the harness speaks to.
fn ports(assembly: &Assembly, sessions: Arc<dyn Sessions>) -> Ports {
    Ports {
        sessions,
        changes: Arc::new(assembly.runtime.clone()),
        blobs: Arc::clone(&assembly.blobs),
        models: Arc::clone(&assembly.models),
        pulse: Arc::clone(&assembly.pulse),
        preferences: assembly.front_ends.preferences.clone(),
        outlines: Arc::clone(&assembly.outlines),
        tree: assembly.tree.clone(),
    }
}

/// The desktop-assistant protocol.
fn desktop(options: &Options, assembly: &Assembly, sessions: Arc<dyn Sessions>) -> axum::Router {
    let Jarvis { workspace, session_expiry, toolset, .. } = options.jarvis.clone();
    let ports = jarvis::Ports {
        sessions,
        directory: Arc::clone(&assembly.directory),
        memory: assembly.memory.clone(),
        pulse: Arc::clone(&assembly.pulse),
        stamps: Arc::new(SystemStamps),
    };
    jarvis::router(ports, jarvis::Settings { workspace, expiry: session_expiry, toolset })
}

fn settings(options: &Options) -> Settings {
    Settings { default_model: options.default_model.to_string() }
}

/// Whom a listener answers that is addressed by these names.
fn access(options: &Options, hosts: &[String], refuse: fn(&Denied) -> Response) -> Access {
    Access {
        token: options.auth.token.clone().map(Token::new),
        own: None,
        hosts: hosts.to_vec(),
        origins: options.auth.origins.clone(),
        asks_itself: |_| false,
        refuse,
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use std::sync::mpsc::{Receiver, channel};

    use quintet_runtime::Pace;

    use super::*;

    /// A store whose disk hangs until this is told otherwise.
    struct Hangs(Receiver<()>);

    impl Drop for Hangs {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[tokio::test]
    async fn a_disk_that_hangs_keeps_neither_the_limit_nor_a_signal_from_ending_it() {
        let (soon, late) = (Duration::from_millis(1), Duration::from_secs(3600));
        let (_answers, disk) = channel();
        assert_eq!(hurried(drop_aside(Hangs(disk)), pending(), soon).await, Some(1));
        let (_answers, disk) = channel();
        assert_eq!(hurried(drop_aside(Hangs(disk)), ready(Signal::INT), late).await, Some(130));
        // One that was not begun, or is in the middle of something else, owns the disk as well.
        let (_answers, disk) = channel();
        let disk = Hangs(disk);
        let closing = async move {
            pending::<()>().await;
            drop(disk);
        };
        assert_eq!(hurried(closing, ready(Signal::INT), late).await, Some(130));
    }

    #[test]
    fn each_limit_leaves_room_for_those_inside_it() {
        assert!(Pace::default().stop_within < CLOSE_TIMEOUT);
        assert!(CLOSE_TIMEOUT + DRAIN_TIMEOUT < SHUTDOWN_TIMEOUT);
        assert!(SHUTDOWN_TIMEOUT + BLOCKING_TIMEOUT <= Duration::from_secs(10));
    }

    #[tokio::test]
    async fn a_shutdown_that_hangs_has_an_end() {
        let (soon, late) = (Duration::from_millis(1), Duration::from_secs(3600));
        assert_eq!(hurried(ready(()), pending(), late).await, None);
        assert_eq!(hurried(pending(), pending(), soon).await, Some(1));
        assert_eq!(hurried(pending(), ready(Signal::INT), late).await, Some(130));
        assert_eq!(hurried(pending(), ready(Signal::TERM), late).await, Some(143));
    }
}
