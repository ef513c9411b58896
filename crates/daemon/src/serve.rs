//! Runs the daemon: binds, says so, serves, and shuts down in order.

mod agent;
mod terminal;
mod windie;

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use axum::serve::ListenerExt as _;
use quintet_dialects::harness::{self, Ports, Settings};
use quintet_dialects::jarvis;
use quintet_dialects::transport::guard::{Guard, Token};
use quintet_dialects::transport::uds::Socket;
use quintet_kernel::port::Sessions;
use quintet_runtime::SystemStamps;
use quintet_tools::sandbox::{self, Mode};
use rustix::process::Signal;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::assemble::{Assembly, assemble};
use crate::cli::Flags;
use crate::options::{self, Jarvis, Options};
use crate::telemetry;

/// How long sessions have to make everything durable when the daemon ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long connections may take to end after the signal; sessions are parked by then.
const FAREWELL: Duration = Duration::from_secs(2);

/// `quintet serve`.
pub(crate) fn main(flags: &Flags, dev: bool) -> Result<()> {
    let filter = options::environment().into_iter().find(|(name, _)| name == "QUINTET_LOG");
    telemetry::start(flags.log_format, filter.as_ref().map(|(_, value)| value.as_str()));
    let mut options = options::read(flags)?;
    if dev {
        options.agent.socket = options.agent.socket.dev();
        options.agent.health = options.agent.health.dev();
    }
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    threads.block_on(run(&options))
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
    let bound = Bound::new(options).await?;
    let woken = assembly.runtime.recover().await?;
    if woken > 0 {
        tracing::info!(sessions = woken, "going on with what was left open");
    }
    announce(&bound)?;
    let daemon = Daemon::start(options, assembly, bound);
    tokio::select! {
        () = signals.wait() => {
            daemon.stop().await;
            Ok(())
        }
        () = writer_ended => {
            bail!("the thread that writes the database is gone: nothing can be kept any more")
        },
    }
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
    /// The session tree takes its leave.
    resting: CancellationToken,
    listeners: JoinSet<()>,
    followers: JoinSet<()>,
}

impl Daemon {
    fn start(options: &Options, assembly: Assembly, bound: Bound) -> Self {
        let (closing, resting) = (CancellationToken::new(), CancellationToken::new());
        let (mut listeners, mut followers) = (JoinSet::new(), JoinSet::new());
        let sessions: Arc<dyn Sessions> = Arc::new(assembly.runtime.clone());
        if let Some(tree) = &assembly.tree {
            followers.spawn(tree.clone().run(Arc::clone(&sessions), resting.clone()));
        }
        if let Some(audit) = &assembly.audit {
            followers.spawn(audit.clone().run(Arc::clone(&sessions), resting.clone()));
        }
        if let Some(listener) = bound.jarvis {
            let router = desktop(options, &assembly, Arc::clone(&sessions));
            listeners.spawn(serve_http(listener, router, closing.clone()));
        }
        let (speaks, tells) = agent::routers(options, &assembly, &closing);
        if let Some(listener) = bound.agent {
            listeners.spawn(serve_http(listener, speaks, closing.clone()));
        }
        if let Some(listener) = bound.agent_health {
            listeners.spawn(serve_http(listener, tells, closing.clone()));
        }
        if let Some(listener) = bound.windie {
            let (ports, settings) = windie::parts(options, &assembly, &closing);
            followers.spawn(quintet_dialects::windie::sweep(ports.clone(), settings.clone()));
            let (router, telling) = quintet_dialects::windie::service(ports, settings);
            listeners.spawn(telling);
            listeners.spawn(serve_http(listener, router, closing.clone()));
        }
        if let (Some(socket), Some(settings)) = (bound.terminal, &options.terminal) {
            listeners.spawn(terminal::run(socket, options, settings, &assembly, &closing));
        }
        if let Some(listener) = bound.harness {
            let ports = Ports {
                sessions,
                changes: Arc::new(assembly.runtime.clone()),
                blobs: Arc::clone(&assembly.blobs),
                models: Arc::clone(&assembly.models),
                pulse: Arc::clone(&assembly.pulse),
                preferences: Arc::clone(&assembly.front_ends.preferences),
                outlines: Arc::clone(&assembly.outlines),
                tree: assembly.tree.clone(),
            };
            listeners.spawn(serve_http(
                listener,
                harness::router(ports, settings(options)),
                closing.clone(),
            ));
        }
        Self { assembly, closing, resting, listeners, followers }
    }

    /// No new turns, running ones parked durably, everybody told.
    async fn stop(mut self) {
        tracing::info!("shutting down");
        self.closing.cancel();
        self.resting.cancel();
        while self.followers.join_next().await.is_some() {}
        self.assembly.runtime.close(CLOSE_TIMEOUT).await;
        if let Some(local) = self.assembly.local.take() {
            let closed = tokio::task::spawn_blocking(move || local.close());
            let _ = closed.await;
        }
        let ended = async { while self.listeners.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, ended).await.is_err() {
            tracing::warn!("some connections did not end and are dropped");
        }
    }
}

/// The desktop-assistant protocol.
fn desktop(options: &Options, assembly: &Assembly, sessions: Arc<dyn Sessions>) -> axum::Router {
    let Jarvis { hosts, workspace, session_expiry, toolset, .. } = options.jarvis.clone();
    let ports = jarvis::Ports {
        sessions,
        directory: Arc::clone(&assembly.directory),
        memory: assembly.memory.clone(),
        pulse: Arc::clone(&assembly.pulse),
        stamps: Arc::new(SystemStamps),
    };
    let guard = Guard { hosts, token: None };
    jarvis::router(ports, jarvis::Settings { guard, workspace, expiry: session_expiry, toolset })
}

fn settings(options: &Options) -> Settings {
    let guard = Guard {
        hosts: options.harness_hosts.clone(),
        token: options.harness_token.clone().map(Token::new),
    };
    Settings { guard, default_model: options.default_model.to_string() }
}

async fn serve_http(listener: TcpListener, router: axum::Router, closing: CancellationToken) {
    // Deltas are small and must not wait for each other.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    let served = axum::serve(listener, router).with_graceful_shutdown(closing.cancelled_owned());
    if let Err(error) = served.await {
        tracing::error!(%error, "the listener ended");
    }
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
    /// Listened for so that a file that may not grow is an error and not the end.
    _file_size: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _file_size: signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
