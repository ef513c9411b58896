//! Runs the daemon: binds, says so, serves, and shuts down in order.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::serve::ListenerExt as _;
use quintet_dialects::harness::{self, Ports, Settings};
use quintet_dialects::terminal::{self, Folders};
use quintet_dialects::transport::guard::{Guard, Token};
use quintet_dialects::transport::uds::Socket;
use quintet_kernel::port::Sessions;
use quintet_runtime::SystemStamps;
use quintet_tools::sandbox::{self, Mode};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::assemble::{Assembly, assemble};
use crate::cli::Flags;
use crate::options::{self, Options, Terminal};
use crate::telemetry;

/// How long connections may take to end after the signal; sessions are parked by then.
const FAREWELL: Duration = Duration::from_secs(2);

/// `quintet serve`.
pub(crate) fn main(flags: &Flags) -> Result<()> {
    let filter = options::environment().into_iter().find(|(name, _)| name == "QUINTET_LOG");
    telemetry::start(flags.log_format, filter.as_ref().map(|(_, value)| value.as_str()));
    let options = options::read(flags)?;
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    threads.block_on(run(&options))
}

async fn run(options: &Options) -> Result<()> {
    let mut signals = Signals::listen()?;
    for advice in &options.advice {
        tracing::warn!("{advice}");
    }
    warn_of_gaps(options.sandbox.mode);
    let assembly = assemble(options)?;
    let terminal = match &options.terminal {
        Some(terminal) => Some(
            Socket::bind(&terminal.socket)
                .with_context(|| format!("listen.terminal = {}", terminal.socket.display()))?,
        ),
        None => None,
    };
    let harness = match options.harness {
        Some(address) => Some(
            TcpListener::bind(address)
                .await
                .with_context(|| format!("listen.harness = {address}"))?,
        ),
        None => None,
    };
    let woken = assembly.runtime.recover().await?;
    if woken > 0 {
        tracing::info!(sessions = woken, "going on with what was left open");
    }
    let listeners = Listeners { harness, terminal };
    listeners.announce()?;
    let daemon = Daemon::start(options, assembly, listeners);
    signals.wait().await;
    daemon.stop().await;
    Ok(())
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

/// What is listened on.
struct Listeners {
    harness: Option<TcpListener>,
    terminal: Option<Socket>,
}

impl Listeners {
    /// The one line on standard output, once every listener is bound.
    fn announce(&self) -> Result<()> {
        let mut listeners = serde_json::Map::new();
        if let Some(listener) = &self.harness {
            listeners.insert("harness".into(), format!("http://{}", listener.local_addr()?).into());
        }
        if let Some(socket) = &self.terminal {
            listeners.insert("terminal".into(), socket.path().to_string_lossy().into());
        }
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{{\"ready\":true,\"listeners\":{}}}", Value::Object(listeners))?;
        Ok(stdout.flush()?)
    }
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
    fn start(options: &Options, assembly: Assembly, bound: Listeners) -> Self {
        let (closing, resting) = (CancellationToken::new(), CancellationToken::new());
        let (mut listeners, mut followers) = (JoinSet::new(), JoinSet::new());
        let sessions: Arc<dyn Sessions> = Arc::new(assembly.runtime.clone());
        if let Some(tree) = &assembly.tree {
            followers.spawn(tree.clone().run(Arc::clone(&sessions), resting.clone()));
        }
        if let (Some(socket), Some(terminal)) = (bound.terminal, &options.terminal) {
            let ports = terminal_ports(&assembly, &sessions);
            let settings = terminal_settings(options, terminal);
            listeners.spawn(terminal::run(socket, ports, settings, closing.clone()));
        }
        if let Some(listener) = bound.harness {
            let ports = Ports {
                sessions,
                changes: Arc::new(assembly.runtime.clone()),
                blobs: Arc::clone(&assembly.blobs),
                models: Arc::clone(&assembly.models),
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
        self.assembly.runtime.close().await;
        let ended = async { while self.listeners.join_next().await.is_some() {} };
        if tokio::time::timeout(FAREWELL, ended).await.is_err() {
            tracing::warn!("some connections did not end and are dropped");
        }
    }
}

fn terminal_ports(assembly: &Assembly, sessions: &Arc<dyn Sessions>) -> terminal::Ports {
    terminal::Ports {
        sessions: Arc::clone(sessions),
        removals: Arc::new(assembly.runtime.clone()),
        models: Arc::clone(&assembly.models),
        stamps: Arc::new(SystemStamps),
    }
}

fn terminal_settings(options: &Options, terminal: &Terminal) -> terminal::Settings {
    terminal::Settings {
        default_model: options.default_model.clone(),
        folders: Folders::new(terminal.folders.clone()),
        context_tokens: terminal.context_tokens,
        answer_within_ms: terminal.answer_within_ms,
    }
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
}

impl Signals {
    fn listen() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
