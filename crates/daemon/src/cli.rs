//! The command line of `quintet`: subcommands, arguments and their help texts.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

use crate::import::Source;
use crate::worker::JOBS_LIMIT;

/// A local agent daemon for every front end: terminal, editor, browser, desktop, scripts.
#[derive(Debug, Parser)]
#[command(
    name = "quintet",
    version,
    after_help = "Start with `quintet serve` in one terminal and `quintet chat` in another.\n\
                  `quintet doctor` checks the machine and the configuration."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the daemon in the foreground.
    Serve {
        #[command(flatten)]
        flags: Flags,
        /// Use the development ports of the protocols that have them.
        #[arg(long)]
        dev: bool,
        /// Leave the process group of the starting program, and keep running if that is killed.
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Chat with a running daemon, or ask it one question from a script.
    Chat(Chat),
    /// Print the address of the web console and open it in the browser.
    Console(Flags),
    /// Serve an editor on standard input and output (Agent Client Protocol).
    ///
    /// Connects to the daemon of the data directory, and starts it if it is not running.
    Acp(Flags),
    /// Serve an MCP client on standard input and output, or manage MCP servers.
    ///
    /// Without a subcommand, connects to the daemon of the data directory, and starts it if it is not
    /// running. The subcommands manage the servers whose tools are offered to models.
    #[command(args_conflicts_with_subcommands = true)]
    Mcp {
        #[command(subcommand)]
        verb: Option<Mcp>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Check the machine and the configuration, and say how to fix problems.
    Doctor(Flags),
    /// Print every effective setting and where it comes from, without secrets.
    Config(Flags),
    /// List the models, or download one that runs on this machine.
    #[command(args_conflicts_with_subcommands = true)]
    Models {
        #[command(subcommand)]
        verb: Option<Models>,
        #[command(flatten)]
        flags: Flags,
        /// Also list models without a key, of servers that do not answer, or not downloaded yet.
        #[arg(long)]
        all: bool,
    },
    /// Store API keys of providers and of the search engine in the desktop's keyring.
    Keys {
        #[command(subcommand)]
        verb: Keys,
    },
    /// List the tools: what they do, their kind, whether they need approval.
    Tools {
        #[command(flatten)]
        flags: Flags,
        /// Also print the JSON Schema of their arguments.
        #[arg(long)]
        schema: bool,
    },
    /// Call a tool by hand, as a session would, and print the result as JSON.
    Try {
        #[command(flatten)]
        flags: Flags,
        #[command(flatten)]
        trial: Trial,
    },
    /// Test a model on small tasks and print which it solved.
    ///
    /// Each task is a session in a folder of its own. `--set train` selects the tasks that prompts are tuned
    /// on, `--set test` the others.
    Eval(Eval),
    /// Search the messages of all sessions.
    Sessions {
        #[command(subcommand)]
        verb: Sessions,
    },
    /// Import conversations from codex, Claude Code, opencode and goose as sessions.
    Import(Import),
    /// Write every session as a folder of plain files. Stop the daemon first.
    Export {
        #[command(flatten)]
        flags: Flags,
        /// The target folder; existing files are updated.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Copy all data from SQLite to PostgreSQL or back, and verify the copy.
    ///
    /// Copies sessions, blobs, aliases, settings, installs, artifacts and runs. Stop the daemon first.
    Migrate(Migrate),
    /// List, start, follow and control runs (tasks for workers on other machines).
    Runs {
        #[command(subcommand)]
        verb: Runs,
    },
    /// Take runs from a daemon's queue and carry them out on this machine.
    Worker(Box<Worker>),
    /// List the nodes that share a database, or drain one, through the local daemon.
    #[command(args_conflicts_with_subcommands = true)]
    Nodes {
        #[command(subcommand)]
        verb: Option<Nodes>,
        #[command(flatten)]
        flags: Flags,
    },
    /// List registered computer-use clients, or revoke the token of one.
    #[command(args_conflicts_with_subcommands = true)]
    Installs {
        #[command(subcommand)]
        verb: Option<Installs>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Print the text in a picture, line by line.
    Ocr {
        #[command(flatten)]
        flags: Flags,
        /// PNG, JPEG, WebP or GIF; `-` reads standard input.
        file: PathBuf,
        /// Print JSON, with positions and confidence.
        #[arg(long)]
        json: bool,
    },
    /// Describe a picture with the vision model, or by its text if none is configured.
    Describe {
        #[command(flatten)]
        flags: Flags,
        /// PNG, JPEG, WebP or GIF; `-` reads standard input.
        file: PathBuf,
        /// Print JSON, with the model that was used.
        #[arg(long)]
        json: bool,
    },
    /// Print the embedding of each text as one line of JSON.
    Embed {
        #[command(flatten)]
        flags: Flags,
        #[arg(required = true, value_name = "TEXT")]
        texts: Vec<String>,
    },
    /// Transcribe a recording, one line per utterance.
    Transcribe {
        #[command(flatten)]
        flags: Flags,
        /// A WAV file with 16-bit samples.
        file: PathBuf,
    },
    /// Speak a text into a WAV file.
    Say {
        #[command(flatten)]
        flags: Flags,
        text: String,
        /// The file to write.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Wait for "hey Quintet", send the spoken question to a running daemon, and speak the answer.
    Listen(Listen),
    /// Run a command and end all of its processes when the daemon ends.
    #[command(hide = true)]
    Supervise {
        /// A directory to remove after the command.
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
        /// Run the command in its own namespaces, with a `private` or `shared` network.
        #[arg(long, value_name = "NETWORK")]
        namespaces: Option<String>,
        /// The command creates its own process session.
        #[arg(long)]
        confined: bool,
        /// The command is a server whose input arrives on stdin.
        #[arg(long)]
        forward: bool,
        /// The command arrives on stdin.
        #[arg(long)]
        await_command: bool,
        #[arg(last = true)]
        argv: Vec<OsString>,
    },
    /// Enter a sandbox and execute a command in it.
    #[command(hide = true)]
    Confine {
        /// The command arrives on stdin.
        #[arg(long)]
        await_command: bool,
        policy: OsString,
        #[arg(last = true)]
        argv: Vec<OsString>,
    },
    /// Draw a diagram; the source may be split over several arguments.
    #[command(hide = true)]
    Draw {
        #[arg(last = true)]
        source: Vec<OsString>,
    },
}

/// Arguments of `quintet chat`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Chat {
    /// Ask this, print the answer and exit; standard input is added to the question.
    #[arg(short = 'p', long = "print", value_name = "QUESTION")]
    pub(crate) question: Option<String>,
    /// Print every notification as one line of JSON instead.
    #[arg(long, requires = "question")]
    pub(crate) json: bool,
    /// Approve every tool call (default: deny calls that need approval).
    #[arg(long, requires = "question")]
    pub(crate) yes: bool,
    /// Continue a session.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The model to use.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The daemon's socket (default: the newest that answers).
    #[arg(long, value_name = "SOCKET", env = "OPENAGENT_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// Do not save the input history.
    #[arg(long)]
    pub(crate) no_history: bool,
}

/// Arguments of `quintet eval`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Eval {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The model to test (default: the model that sessions use).
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// Run this task only; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Vec<String>,
    /// Run your own tasks: a folder with one TOML file per task.
    #[arg(long, value_name = "DIR")]
    pub(crate) tasks: Option<PathBuf>,
    /// Time limit per task, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) seconds: u64,
    /// Print one line of JSON per task.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the messages and tool calls on standard error.
    #[arg(long)]
    pub(crate) transcript: bool,
}

/// The sets of tasks of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Set {
    /// Tasks that prompts are tuned on.
    Train,
    /// Tasks that prompts are never tuned on.
    Test,
    /// All tasks.
    All,
}

impl Set {
    /// Parses the name of a set.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::from_str(word, false).ok()
    }

    pub(crate) fn includes(self, other: Self) -> bool {
        self == Self::All || self == other
    }
}

/// Arguments of `quintet import`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The agent that wrote the files (default: recognized by content).
    #[arg(long, value_enum, value_name = "AGENT")]
    pub(crate) from: Option<Source>,
    /// Files, databases or folders (default: where the agents store theirs).
    pub(crate) paths: Vec<PathBuf>,
}

/// Arguments of `quintet migrate`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The target: `postgres://user@host/database` to copy from SQLite in the data directory, or `sqlite` to
    /// copy from PostgreSQL.
    #[arg(long, value_name = "STORE")]
    pub(crate) to: String,
    /// The database to copy from, for `--to sqlite` (default: `store.url`).
    #[arg(long, value_name = "URL")]
    pub(crate) from: Option<String>,
}

/// Arguments of `quintet listen`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Listen {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// Read a WAV file (16-bit samples) instead of the microphone; `-` reads raw samples (16 bit, 16 kHz,
    /// mono) from standard input.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Write the spoken answers to a WAV file instead of the loudspeaker.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The daemon's address of the computer-use protocol (default: `listen.windie`).
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Nodes {
    /// Move a node's sessions to other nodes, and wait until it has none.
    ///
    /// Idle sessions move at once, the others when their turns are over.
    Drain {
        #[command(flatten)]
        flags: Flags,
        name: String,
    },
    /// Let a node take sessions again.
    Undrain {
        #[command(flatten)]
        flags: Flags,
        name: String,
    },
}

/// Where and how to reach the runs API.
#[derive(Clone, Debug, Args)]
pub(crate) struct ControlPlane {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The daemon's address of the computer-use protocol (default: `listen.windie`).
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The key of the runs API (default: `windie.runs_key`).
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The token of an install, if the daemon requires one.
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first.
    List {
        #[command(flatten)]
        plane: ControlPlane,
        /// List runs of one workspace.
        #[arg(long, value_name = "NAME")]
        workspace: Option<String>,
        /// List runs with this status: active, awaiting_worker, queued, running, paused, stopped, completed,
        /// failed.
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// The maximum number of runs.
        #[arg(long, default_value_t = 50)]
        limit: u64,
    },
    /// Queue a run and print its id.
    Start {
        #[command(flatten)]
        plane: ControlPlane,
        /// The workspace whose queue the run joins.
        #[arg(long, value_name = "NAME", default_value = "default")]
        workspace: String,
        /// The task.
        query: String,
        /// The agent that carries out the run.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// An uploaded file for the run; can be repeated.
        #[arg(long, value_name = "ID")]
        artifact: Vec<String>,
        /// Print the events until the run ends.
        #[arg(long)]
        follow: bool,
    },
    /// Print the events of a run until it ends; the exit code is 0 if it completed.
    Follow {
        #[command(flatten)]
        plane: ControlPlane,
        run: String,
        /// Print one line of JSON per event.
        #[arg(long)]
        json: bool,
    },
    /// Pause a run: its next tool call waits until the run is resumed.
    Pause {
        #[command(flatten)]
        plane: ControlPlane,
        run: String,
    },
    /// Resume a paused run, or release calls that wait for a person.
    Resume {
        #[command(flatten)]
        plane: ControlPlane,
        run: String,
    },
    /// Set who may act in a run: agent_only, shared_control or human_override.
    Mode {
        #[command(flatten)]
        plane: ControlPlane,
        run: String,
        #[arg(value_parser = ["agent_only", "shared_control", "human_override"])]
        mode: String,
    },
    /// Stop a run, or all of them.
    Stop {
        #[command(flatten)]
        plane: ControlPlane,
        #[arg(required_unless_present = "all")]
        run: Option<String>,
        /// Stop every active run.
        #[arg(long, conflicts_with = "run")]
        all: bool,
        /// Only runs of this workspace.
        #[arg(long, value_name = "NAME", requires = "all")]
        workspace: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// List the servers in the configuration and in this folder's `.mcp.json`.
    List {
        #[command(flatten)]
        flags: Flags,
    },
    /// Add a server to the configuration file; restart the daemon to use it.
    Add(AddServer),
    /// Remove a server from the configuration file.
    Remove {
        #[command(flatten)]
        flags: Flags,
        name: String,
    },
    /// Connect to a server and list its tools.
    Test {
        #[command(flatten)]
        flags: Flags,
        name: String,
    },
    /// Log in to a server over HTTP, in the browser; a running daemon uses the login at once.
    Login(Login),
    /// Delete the login for a server.
    Logout {
        #[command(flatten)]
        flags: Flags,
        name: String,
    },
    /// Allow the servers of a folder's `.mcp.json` to start, as they are defined now.
    Allow {
        #[command(flatten)]
        flags: Flags,
        /// The folder (default: the current one).
        folder: Option<PathBuf>,
    },
}

/// Arguments of `quintet mcp add`.
#[derive(Clone, Debug, Args)]
pub(crate) struct AddServer {
    #[command(flatten)]
    pub(crate) flags: Flags,
    pub(crate) name: String,
    /// The URL of a server that speaks HTTP.
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// An environment variable for the server; can be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// A header for every request; can be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    pub(crate) header: Vec<String>,
    /// Seconds that a call may take without reporting progress.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// A path that the server may read; can be repeated.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(crate) read: Vec<PathBuf>,
    /// A path that the server may read and write; can be repeated.
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(crate) write: Vec<PathBuf>,
    /// Run the server without the network.
    #[arg(long, conflicts_with = "url")]
    pub(crate) no_network: bool,
    /// Run the server without a sandbox.
    #[arg(long, conflicts_with = "url")]
    pub(crate) no_sandbox: bool,
    /// The program and its arguments, after `--`.
    #[arg(last = true, required_unless_present = "url")]
    pub(crate) command: Vec<String>,
}

/// Arguments of `quintet mcp login`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) flags: Flags,
    pub(crate) name: String,
    /// A permission to request instead of those that the server names; can be repeated.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// Print the address, but do not open the browser.
    #[arg(long)]
    pub(crate) no_browser: bool,
}

/// Arguments of `quintet worker`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Worker {
    #[command(flatten)]
    pub(crate) plane: ControlPlane,
    /// The workspace whose queue to take runs from.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) workspace: String,
    /// The number of runs to carry out at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=JOBS_LIMIT))]
    pub(crate) jobs: u64,
    /// The worker's id: unique in the fleet, and the same after a restart (default: `worker-` and the host name).
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// The user that owns the worker's conversations (default: the worker's id).
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// The folder that tools work in (default: the current one).
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The daemon that runs the sessions: an address, or `own` for the daemon of the data directory, which is
    /// started if it is not running (default: the daemon at --url, else `own`).
    #[arg(long, value_name = "URL")]
    pub(crate) daemon: Option<String>,
    /// Milliseconds between heartbeats.
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    pub(crate) interval_ms: u64,
}

/// Arguments of `quintet try`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Trial {
    /// The name of the tool (see `quintet tools`).
    pub(crate) tool: String,
    /// The arguments of the tool, as JSON.
    #[arg(default_value = "{}")]
    pub(crate) input: String,
    /// The workspace (default: the current folder).
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Print the approval request instead; nothing is changed.
    #[arg(long)]
    pub(crate) assess: bool,
    /// Repeat the call, with caches kept in between.
    #[arg(long, default_value_t = 1)]
    pub(crate) times: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// Download the weights of a model that runs on this machine; resumes an interrupted download.
    Pull {
        #[command(flatten)]
        flags: Flags,
        /// A chat model, a sense (`embeddings`, `ocr`, `transcription`, `speech`, …), or `senses` for all senses
        /// that are on (default: the chat model that sessions use).
        name: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Store a key, read from a prompt or a pipe (never from an argument).
    Set {
        #[command(flatten)]
        flags: Flags,
        /// The provider (see `quintet models --all`), or `search`.
        name: String,
        /// Surplus arguments, caught here so that the error message does not repeat a key.
        #[arg(hide = true)]
        more: Vec<OsString>,
    },
    /// List the names of the stored keys.
    List,
    /// Remove a key.
    Forget {
        /// The provider.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Installs {
    /// List clients: owner, registration and when they were last seen.
    List(Flags),
    /// Revoke the token of a client; requests with it are refused at once.
    Revoke {
        #[command(flatten)]
        flags: Flags,
        /// The id of the client, as listed.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// Search messages of users, models and tools; works with or without a running daemon.
    Find(Find),
}

/// Arguments of `quintet sessions find`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Find {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The words to search for; no character has a special meaning.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// The maximum number of messages.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) limit: u8,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Flags {
    /// The configuration file (TOML).
    #[arg(long, value_name = "FILE", env = "QUINTET_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The folder that holds sessions (default: ~/.local/share/quintet).
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The address of a protocol, such as `harness=127.0.0.1:8787` or `harness=off`; can be repeated.
    #[arg(long, value_name = "PROTOCOL=ADDRESS")]
    pub(crate) listen: Vec<String>,
    /// Any other setting, such as `approval.on_deny=fail`; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The format of the log on standard error.
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}
