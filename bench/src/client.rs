//! The clients of both sides: the proxy, and the daemon with each of its protocols.

pub(crate) mod agent;
mod computer;
mod desktop;
mod editor;
mod harness;
mod openai;
pub(crate) mod terminal;
pub(crate) mod websocket;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tokio::time::timeout;

use crate::child::Child;
use crate::clock;
use crate::http::Conn;
use crate::received::{PROXY, ReceivedAnswer};
use crate::script::Script;

use computer::Computer;
use desktop::Desktop;
use editor::Editor;
use openai::OpenAi;

pub(crate) use harness::{Follower, Session, create, send};

/// Longer than anything here takes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// One turn as the client saw it.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Just before the request was written.
    pub(crate) sent: u64,
    pub(crate) seen: ReceivedAnswer,
}

/// A protocol of the daemon.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Protocol {
    Harness,
    Desktop,
    Terminal,
    Computer,
    Agent,
    Editor,
    /// The OpenAI-compatible API, with an agent as the model.
    OpenAiAgent,
    /// The OpenAI-compatible API, with the provider's own model.
    OpenAiModel,
}

impl Protocol {
    pub(crate) const ALL: [Self; 8] = [
        Self::Harness,
        Self::Desktop,
        Self::Terminal,
        Self::Computer,
        Self::Agent,
        Self::Editor,
        Self::OpenAiAgent,
        Self::OpenAiModel,
    ];

    /// The protocol's name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Harness => "harness",
            Self::Desktop => "desktop",
            Self::Terminal => "terminal",
            Self::Computer => "computer use",
            Self::Agent => "agent server",
            Self::Editor => "editors (ACP)",
            Self::OpenAiAgent => "OpenAI API, agent",
            Self::OpenAiModel => "OpenAI API, model",
        }
    }
}

/// A connection that runs one turn after the other.
#[derive(Debug)]
pub(crate) enum Client {
    Proxy(Conn, Padding),
    Harness(Box<Session>),
    Desktop(Box<Desktop>),
    Terminal(Box<terminal::Terminal>),
    Computer(Box<Computer>),
    Agent(Box<agent::Agent>),
    Editor(Box<Editor>),
    OpenAi(Box<OpenAi>),
}

/// Text at the beginning of a proxy request, so that its prompt is as long as another.
#[derive(Debug, Default)]
pub(crate) struct Padding(String);

impl Client {
    /// Connects to a proxy.
    pub(crate) async fn proxy(address: SocketAddr) -> Result<Self> {
        Self::proxy_with_prompt(address, 0).await
    }

    /// Connects to a proxy; its prompts get this many extra bytes.
    pub(crate) async fn proxy_with_prompt(address: SocketAddr, bytes: usize) -> Result<Self> {
        Ok(Self::Proxy(Conn::open(address).await?, Padding("word ".repeat(bytes / 5))))
    }

    /// Creates a session and follows it.
    pub(crate) async fn session(address: SocketAddr, workspace: &Path) -> Result<Self> {
        Ok(Self::Harness(Box::new(Session::create(address, workspace).await?)))
    }

    /// Connects to a daemon with a protocol and creates a session.
    pub(crate) async fn connect(
        protocol: Protocol,
        daemon: &Child,
        workspace: &Path,
    ) -> Result<Self> {
        Ok(match protocol {
            Protocol::Harness => return Self::session(daemon.address, workspace).await,
            Protocol::Desktop => Self::Desktop(Box::new(Desktop::open(daemon).await?)),
            Protocol::Terminal => {
                let (terminal, _) = terminal::Terminal::open(daemon, workspace).await?;
                Self::Terminal(Box::new(terminal))
            }
            Protocol::Computer => Self::Computer(Box::new(Computer::open(daemon).await?)),
            Protocol::Agent => Self::Agent(Box::new(agent::Agent::open(daemon, workspace).await?)),
            Protocol::Editor => Self::Editor(Box::new(Editor::open(daemon, workspace).await?)),
            Protocol::OpenAiAgent => Self::openai(daemon, "quintet/fake/fake").await?,
            Protocol::OpenAiModel => Self::openai(daemon, "fake/fake").await?,
        })
    }

    async fn openai(daemon: &Child, model: &'static str) -> Result<Self> {
        Ok(Self::OpenAi(Box::new(OpenAi::open(daemon, model).await?)))
    }

    /// Sends a message and reads the whole answer.
    pub(crate) async fn turn(&mut self, script: Script) -> Result<Turn> {
        let turn = timeout(ANSWER_TIMEOUT, self.attempt(script)).await;
        let turn = turn.context("the answer does not come")??;
        turn.seen.check(script.deltas).with_context(|| script.to_string())?;
        Ok(turn)
    }

    async fn attempt(&mut self, script: Script) -> Result<Turn> {
        match self {
            Self::Proxy(conn, padding) => through_proxy(conn, padding, script).await,
            Self::Harness(session) => session.turn(script).await,
            Self::Desktop(desktop) => desktop.turn(script).await,
            Self::Terminal(terminal) => terminal.turn(script).await,
            Self::Computer(computer) => computer.turn(script).await,
            Self::Agent(agent) => agent.turn(script).await,
            Self::Editor(editor) => editor.turn(script).await,
            Self::OpenAi(openai) => openai.turn(script).await,
        }
    }
}

async fn through_proxy(
    conn: &mut Conn,
    Padding(padding): &Padding,
    script: Script,
) -> Result<Turn> {
    let body = json!({ "text": format!("{padding}{script}") }).to_string();
    let sent = clock::now();
    conn.send("POST", "/chat", &body).await?;
    let mut lines = conn.lines().await?;
    let mut seen = ReceivedAnswer::new(&PROXY);
    while lines.read(conn, |line| seen.frame(line)).await? {}
    Ok(Turn { sent, seen })
}
