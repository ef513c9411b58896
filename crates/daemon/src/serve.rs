//! Runs the daemon: binds listeners, prints the ready line, serves, and shuts down in order.

mod memory;
mod signals;
mod tasks;

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::process;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use quintet_dialects::dialect::{
    AccessRules, Endpoint, ListenerSpec, Service, Services, Transport,
};
use quintet_dialects::presence::Presence;
use quintet_dialects::projection::{self, Sources};
use quintet_dialects::transport::access::{Access, Token};
use quintet_dialects::transport::listener::serve as serve_http;
use quintet_dialects::transport::uds::Socket;
use quintet_kernel::port::BoxFuture;
use quintet_runtime::SystemClock;
use quintet_tools::sandbox::{self, Mode};
use rustix::process::Signal;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::assemble::{Assembly, assemble, secrets};
use crate::audit::Audit;
use crate::cli::Flags;
use crate::doctor::Doctor;
use crate::nodes::{self, BoundNode};
use crate::options::{self, Auth, ListenAddress, Listener, Options};
use crate::sessions::{self, Indexer};
use crate::{open_files, telemetry};

use signals::{Signals, exit_code};
use tasks::Tasks;

/// Maximum time for sessions to become durable: longer than they wait for a tool to stop.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(6);
/// Maximum time for connections to end once sessions are parked.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum time of the whole shutdown, without blocking calls.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(9);
/// Maximum time for blocking calls to end after that, such as a read from a hanging disk.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(1);

/// `quintet serve`.
pub(crate) fn main(flags: &Flags, dev: bool, detached: bool) -> Result<()> {
    if detached {
        rustix::process::setsid().context("a session of its own")?;
    }
    let filter = options::environment().into_iter().find(|(name, _)| name == "QUINTET_LOG");
    telemetry::start(flags.log_format, filter.as_ref().map(|(_, value)| value.as_str()));
    let mut options = options::read(flags)?;
    if dev {
        options.listeners.iter_mut().for_each(Listener::use_dev_port);
    }
    open_files::raise_limit();
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let doctor = Arc::new(Doctor::new(flags.clone()));
    let ended = threads.block_on(run(&options, doctor, detached));
    threads.shutdown_timeout(BLOCKING_TIMEOUT);
    ended
}

async fn run(options: &Options, doctor: Arc<Doctor>, detached: bool) -> Result<()> {
    let mut signals = Signals::listen()?;
    for advice in &options.advice {
        tracing::warn!("{advice}");
    }
    for (what, remedy) in options.warnings() {
        tracing::warn!("{what}; {remedy}");
    }
    warn_sandbox_gaps(options.sandbox.mode);
    let assembly = assemble(options)?;
    let storage_ended = assembly.storage.ended();
    assembly.senses.log_missing();
    assembly.voice.log_missing();
    encrypt_old_keys(&assembly).await;
    remove_erased(&assembly).await;
    let bound = bind_all(&options.listeners).await?;
    let node = nodes::bind(options, &assembly).await?;
    let woken = assembly.runtime.recover().await?;
    if woken > 0 {
        tracing::info!(sessions = woken, "resuming sessions with unfinished work");
    }
    match print_ready_line(&bound) {
        // The program that started the daemon may have ended by now.
        Err(error) if detached => tracing::warn!("could not print the ready line: {error:#}"),
        announced => announced?,
    }
    let mut daemon = Daemon::start(options, assembly, doctor, bound, node);
    let ended = tokio::select! {
        _ = signals.next() => Ok(()),
        failure = daemon.failed() => Err(failure),
        why = storage_ended => Err(anyhow!(why)),
        never = memory::release_when_idle() => match never {},
    };
    if let Err(failure) = &ended {
        tracing::error!("{failure:#}");
    }
    tracing::info!("shutting down");
    if let Some(code) = wait_for_shutdown(daemon.stop(), signals.next(), SHUTDOWN_TIMEOUT).await {
        // Returning would wait for hanging threads. Everything acknowledged is durable, and the
        // next start continues the rest.
        process::exit(code);
    }
    ended
}

/// Removes sessions that were erased while the daemon was down from the search index.
async fn remove_erased(assembly: &Assembly) {
    if let Err(error) =
        sessions::remove_erased(&assembly.messages, &*assembly.storage.preferences).await
    {
        tracing::warn!(%error, "erased sessions may still be in the search index");
    }
}

/// Encrypts keys of an older version. Failures are reported to the user when the key is used.
async fn encrypt_old_keys(assembly: &Assembly) {
    let vacuum = async || assembly.storage.vacuum().await;
    if let Err(error) = assembly.settings.encrypt_old_keys(vacuum).await {
        tracing::error!(%error, "could not encrypt users' keys of an older version");
    }
}

/// Waits for the end of a shutdown. Returns the exit code if another signal arrives or it takes too
/// long; the process must exit then. The shutdown is not dropped, because that may wait for a
/// hanging disk.
async fn wait_for_shutdown(
    shutdown: impl Future<Output = ()>,
    signal: impl Future<Output = Signal>,
    limit: Duration,
) -> Option<i32> {
    let mut shutdown = Box::pin(shutdown);
    let code = tokio::select! {
        () = &mut shutdown => return None,
        signal = signal => exit_code(signal),
        () = tokio::time::sleep(limit) => {
            tracing::error!("the shutdown timed out");
            1
        }
    };
    std::mem::forget(shutdown);
    Some(code)
}

/// Logs what the kernel cannot prevent commands from doing.
fn warn_sandbox_gaps(mode: Mode) {
    if mode == Mode::Off {
        return tracing::warn!("sandbox.mode is off: commands can do everything you can");
    }
    for gap in sandbox::report(Path::new("/proc/self/exe")).missing() {
        tracing::warn!("the sandbox has a gap: {gap}");
    }
}

/// A listener whose socket is bound.
struct Bound {
    spec: &'static ListenerSpec,
    socket: BoundSocket,
}

enum BoundSocket {
    Tcp(TcpListener),
    Unix(Socket),
}

/// Binds every listener. An optional one at its default address is left out, with a warning, if it
/// cannot be bound.
async fn bind_all(listeners: &[Listener]) -> Result<Vec<Bound>> {
    let mut all = Vec::new();
    for listener in listeners {
        let spec = listener.spec;
        match bind(listener).await {
            Ok(socket) => all.push(Bound { spec, socket }),
            Err(error) if !listener.is_required() => {
                tracing::warn!("{error:#}; this protocol is not served");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

async fn bind(listener: &Listener) -> Result<BoundSocket> {
    let name = listener.spec.name;
    match &listener.place {
        ListenAddress::Tcp(address) => {
            let bound = TcpListener::bind(address).await.map(BoundSocket::Tcp);
            let in_use = bound.as_ref().is_err_and(|error| error.kind() == ErrorKind::AddrInUse);
            let remedy = if in_use {
                " is in use by another program: stop that program, or set another address \
                 (port 0 takes a free one)"
            } else {
                ""
            };
            bound.with_context(|| format!("listen.{name} = {address}{remedy}"))
        }
        ListenAddress::Unix(path) => {
            let bound = Socket::bind(path).map(BoundSocket::Unix);
            bound.with_context(|| format!("listen.{name} = {}", path.display()))
        }
    }
}

/// Prints the one line on standard output, once every listener is bound.
fn print_ready_line(bound: &[Bound]) -> Result<()> {
    let mut listeners = serde_json::Map::new();
    for Bound { spec, socket } in bound {
        let scheme = if spec.transport == Transport::WebSocket { "ws" } else { "http" };
        let place = match socket {
            BoundSocket::Tcp(listener) => format!("{scheme}://{}", listener.local_addr()?),
            BoundSocket::Unix(socket) => socket.path().to_string_lossy().into_owned(),
        };
        listeners.insert(spec.name.into(), place.into());
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{{\"ready\":true,\"listeners\":{}}}", Value::Object(listeners))?;
    Ok(stdout.flush()?)
}

struct Daemon {
    assembly: Assembly,
    /// Cancelled when nothing new is accepted.
    closing: CancellationToken,
    /// Cancelled when sessions are parked, so that projections can finish.
    parked: CancellationToken,
    listeners: Tasks,
    followers: Tasks,
}

impl Daemon {
    fn start(
        options: &Options,
        assembly: Assembly,
        doctor: Arc<Doctor>,
        mut bound: Vec<Bound>,
        node: Option<BoundNode>,
    ) -> Self {
        let (closing, parked) = (CancellationToken::new(), CancellationToken::new());
        let services = services(&assembly, doctor, &closing, &parked);
        let mut listeners = Tasks::default();
        let mut followers = projections(options, &assembly, &parked);
        followers.spawn("the leases of runs", assembly.runs.clone().watch(closing.clone()));
        if let Some(node) = node {
            listeners.spawn("node.advertise", node.serve(closing.clone()));
        }
        for (dialect, protocol) in &options.protocols {
            let is_own =
                |bound: &Bound| dialect.listeners.iter().any(|own| own.name == bound.spec.name);
            let services = services.for_front_end(dialect.name);
            let serving = protocol.serve(&services, bound.iter().any(is_own));
            for (name, task) in serving.background {
                followers.spawn(name, task.0);
            }
            for Endpoint { listener, service } in serving.endpoints {
                if let Some(at) = bound.iter().position(|bound| bound.spec.name == listener) {
                    let serve =
                        endpoint(bound.swap_remove(at).socket, service, &options.auth, &closing);
                    listeners.spawn(format!("listen.{listener}"), serve);
                }
            }
        }
        Self { assembly, closing, parked, listeners, followers }
    }

    /// Waits until a task ends that should run as long as the daemon.
    async fn failed(&mut self) -> anyhow::Error {
        tokio::select! {
            failure = self.listeners.failed() => failure,
            failure = self.followers.failed() => failure,
        }
    }

    /// Shuts down: refuses new turns, parks running ones durably, closes connections, updates
    /// projections.
    async fn stop(mut self) {
        self.closing.cancel();
        self.assembly.runtime.close(CLOSE_TIMEOUT).await;
        self.parked.cancel();
        let local = self.assembly.local.take();
        let unloaded = tokio::task::spawn_blocking(move || local.map(|local| local.close()));
        let drained = tokio::time::timeout(DRAIN_TIMEOUT, self.listeners.ended());
        let servers = self.assembly.mcp.close();
        let (_, (), (), drained) = tokio::join!(unloaded, self.followers.ended(), servers, drained);
        if drained.is_err() {
            tracing::warn!("some connections did not end in time and are closed");
        }
        drop_on_blocking_thread(self).await;
    }
}

/// Drops a value on a blocking thread: the last owner of the store waits for the disk, and signals
/// and the time limit must be handled meanwhile.
async fn drop_on_blocking_thread(value: impl Send + 'static) {
    // Only a panic of a destructor is an error here, and it was logged.
    let _ = tokio::task::spawn_blocking(move || drop(value)).await;
}

/// Serves an endpoint on its socket until the daemon closes.
fn endpoint(
    socket: BoundSocket,
    service: Service,
    auth: &Auth,
    closing: &CancellationToken,
) -> BoxFuture<'static, ()> {
    match (socket, service) {
        (BoundSocket::Tcp(listener), Service::Http { router, access }) => {
            let AccessRules { token, hosts, has_own_auth, refuse } = access;
            let access = Access {
                token: auth.token.clone().map(Token::new),
                protocol_token: token,
                hosts,
                origins: auth.origins.clone(),
                has_own_auth,
                refuse,
            };
            Box::pin(serve_http(listener, router, access, closing.clone()))
        }
        (BoundSocket::Unix(socket), Service::Unix(serve)) => serve(socket),
        (BoundSocket::Tcp(_), Service::Unix(_)) | (BoundSocket::Unix(_), Service::Http { .. }) => {
            unreachable!("a listener's transport is the one of its endpoint")
        }
    }
}

/// The parts that protocols are built on.
fn services(
    assembly: &Assembly,
    doctor: Arc<Doctor>,
    closing: &CancellationToken,
    parked: &CancellationToken,
) -> Services {
    let runtime = Arc::new(assembly.runtime.clone());
    let storage = &assembly.storage;
    Services {
        sessions: runtime.clone(),
        archive: Arc::new(assembly.archive.clone()),
        search: Arc::new(assembly.messages.clone()),
        inspection: runtime.clone(),
        overheads: runtime,
        directory: Arc::clone(&storage.sessions),
        blobs: Arc::clone(&storage.blobs),
        models: Arc::clone(&assembly.models),
        storage_health: Arc::clone(&storage.health),
        clock: Arc::new(SystemClock),
        installs: Arc::clone(&storage.installs),
        preferences: assembly.settings.clone(),
        stored_preferences: Arc::clone(&storage.preferences),
        artifacts: Arc::clone(&storage.artifacts),
        uploads: Arc::clone(&storage.uploads),
        runs: Arc::new(assembly.runs.clone()),
        memory: assembly.memory.clone(),
        transcriber: Arc::clone(&assembly.voice.transcriber),
        speaker: Arc::clone(&assembly.voice.speaker),
        directory_listing: Arc::clone(&assembly.directory_listing),
        tool_servers: Arc::new(assembly.mcp.clone()),
        tool_server_control: Arc::new(assembly.mcp.clone()),
        diagnosis: doctor,
        server_prompts: Arc::new(assembly.mcp.clone()),
        change_feed: assembly.changes.clone(),
        presence: Presence::default(),
        editors: assembly.editors.clone(),
        unattended_tools: assembly.unattended_tools.clone(),
        web_search: assembly.searches.clone(),
        closing: closing.clone(),
        sessions_parked: parked.clone(),
        embedder: Arc::clone(&assembly.senses.embedder),
        ocr: Arc::clone(&assembly.senses.ocr),
        vision: Arc::clone(&assembly.vision),
        has_vision_model: assembly.has_vision_model,
    }
}

/// Starts the projections of the journal: the search index and the audit log.
fn projections(options: &Options, assembly: &Assembly, parked: &CancellationToken) -> Tasks {
    let mut tasks = Tasks::default();
    let sources = || Sources {
        changes: assembly.changes.subscribe(),
        sessions: Arc::new(assembly.runtime.clone()),
        clock: Arc::new(SystemClock),
        stop: parked.clone(),
    };
    let (storage, index) = (assembly.storage.clone(), assembly.messages.clone());
    let (index_sources, stop) = (sources(), parked.clone());
    tasks.spawn("the search index", async move {
        match Indexer::open(index, storage.journal, storage.sessions).await {
            Ok(indexer) => projection::run(indexer, index_sources).await,
            Err(error) => {
                tracing::error!(%error, "sessions cannot be searched");
                stop.cancelled().await;
            }
        }
    });
    let (index, stop) = (assembly.messages.clone(), parked.clone());
    tasks.spawn("the vectors of messages", async move {
        tokio::select! {
            () = index.compute_vectors() => {}
            () = stop.cancelled() => {}
        }
    });
    if options.audit {
        let (sources, sessions) = (sources(), Arc::new(assembly.runtime.clone()));
        let (folder, secrets) = (options.data_dir.clone(), secrets(options));
        let positions = nodes::own_settings(options, &assembly.storage);
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use std::sync::mpsc::{Receiver, channel};

    use quintet_runtime::Timing;

    use super::*;

    /// A store whose disk hangs until the sender releases it.
    struct Hangs(Receiver<()>);

    impl Drop for Hangs {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[tokio::test]
    async fn a_hanging_disk_blocks_neither_the_time_limit_nor_a_signal() {
        let (soon, late) = (Duration::from_millis(1), Duration::from_secs(3600));
        let (_answers, disk) = channel();
        assert_eq!(
            wait_for_shutdown(drop_on_blocking_thread(Hangs(disk)), pending(), soon).await,
            Some(1)
        );
        let (_answers, disk) = channel();
        assert_eq!(
            wait_for_shutdown(drop_on_blocking_thread(Hangs(disk)), ready(Signal::INT), late).await,
            Some(130)
        );
        // A future that was not polled, or is pending, owns the disk as well.
        let (_answers, disk) = channel();
        let disk = Hangs(disk);
        let closing = async move {
            pending::<()>().await;
            drop(disk);
        };
        assert_eq!(wait_for_shutdown(closing, ready(Signal::INT), late).await, Some(130));
    }

    #[test]
    fn the_time_limits_are_nested() {
        assert!(Timing::default().stop_within < CLOSE_TIMEOUT);
        assert!(CLOSE_TIMEOUT + DRAIN_TIMEOUT < SHUTDOWN_TIMEOUT);
        assert!(SHUTDOWN_TIMEOUT + BLOCKING_TIMEOUT <= Duration::from_secs(10));
    }

    #[tokio::test]
    async fn a_hanging_shutdown_ends() {
        let (soon, late) = (Duration::from_millis(1), Duration::from_secs(3600));
        assert_eq!(wait_for_shutdown(ready(()), pending(), late).await, None);
        assert_eq!(wait_for_shutdown(pending(), pending(), soon).await, Some(1));
        assert_eq!(wait_for_shutdown(pending(), ready(Signal::INT), late).await, Some(130));
        assert_eq!(wait_for_shutdown(pending(), ready(Signal::TERM), late).await, Some(143));
    }
}
