//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

use crate::import::Source;
use crate::worker::JOBS_LIMIT;

/// One local agent daemon that every agent front end can talk to.
#[derive(Debug, Parser)]
#[command(name = "quintet", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run the daemon.
    Serve {
        #[command(flatten)]
        flags: Flags,
        /// Let protocols that have addresses for development listen there.
        #[arg(long)]
        dev: bool,
        /// Leave the process group of the program that started it, and go on if that is killed.
        #[arg(long, hide = true)]
        detached: bool,
    },
    /// Serve an editor on standard input and output (Agent Client Protocol), by the daemon of the data
    /// directory, which is started if it does not run.
    Acp(Flags),
    /// Take over transcripts of codex, Claude Code, opencode and goose as sessions.
    Import(Import),
    /// Copy every session, blob, alias, setting, install, artifact and run into PostgreSQL or back, and
    /// compare. The daemon must not be running.
    Migrate(Migrate),
    /// Talk to a running daemon in this terminal, or ask it one question from a script.
    Chat(Chat),
    /// Print where the web console is, and open it in the browser.
    Console(Flags),
    /// Print the effective configuration, secrets left out, and where each value comes from.
    Config(Flags),
    /// List the tools: what they do, what they touch, whether they need approval.
    Tools {
        #[command(flatten)]
        flags: Flags,
        /// Print the JSON Schema of their arguments too.
        #[arg(long)]
        schema: bool,
    },
    /// List the models, or fetch one that runs here.
    #[command(args_conflicts_with_subcommands = true)]
    Models {
        #[command(subcommand)]
        verb: Option<Models>,
        #[command(flatten)]
        flags: Flags,
        /// List those too that have no key, do not answer or were not fetched.
        #[arg(long)]
        all: bool,
    },
    /// Read the text in a picture, a line of the picture each.
    Ocr {
        #[command(flatten)]
        flags: Flags,
        /// PNG, JPEG, WebP or GIF; `-` reads standard input.
        file: PathBuf,
        /// Print positions and confidence too, as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Say what is on a picture, by the vision model or, where there is none, by the text on it.
    Describe {
        #[command(flatten)]
        flags: Flags,
        /// PNG, JPEG, WebP or GIF; `-` reads standard input.
        file: PathBuf,
        /// Print the model that looked at it too, as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print the embedding of each text, a line of JSON numbers each.
    Embed {
        #[command(flatten)]
        flags: Flags,
        #[arg(required = true, value_name = "TEXT")]
        texts: Vec<String>,
    },
    /// Print what is said in a recording, a line for each utterance.
    Transcribe {
        #[command(flatten)]
        flags: Flags,
        /// A WAV file with samples of 16 bits.
        file: PathBuf,
    },
    /// Read a text aloud into a WAV file.
    Say {
        #[command(flatten)]
        flags: Flags,
        text: String,
        /// The file to write.
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Wait for "hey Quintet", ask a running daemon what is said then, and answer aloud.
    Listen(Listen),
    /// Keep the keys of providers and of the search engine in the keyring of the desktop.
    Keys {
        #[command(subcommand)]
        verb: Keys,
    },
    /// List the computer-use clients that registered, or take one's token away.
    #[command(args_conflicts_with_subcommands = true)]
    Installs {
        #[command(subcommand)]
        verb: Option<Installs>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Find sessions by what was said in them.
    Sessions {
        #[command(subcommand)]
        verb: Sessions,
    },
    /// List, start, follow and control runs: tasks for the workers of a fleet.
    Runs {
        #[command(subcommand)]
        verb: Runs,
    },
    /// List the nodes that share a store, or drain one. Asks the local daemon.
    #[command(args_conflicts_with_subcommands = true)]
    Nodes {
        #[command(subcommand)]
        verb: Option<Nodes>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Take runs from a control plane and carry them out on this machine.
    Worker(Box<Worker>),
    /// Serve an MCP client on standard input and output, by the daemon of the data directory, which is
    /// started if it does not run; or manage the MCP servers whose tools models are offered.
    #[command(args_conflicts_with_subcommands = true)]
    Mcp {
        #[command(subcommand)]
        verb: Option<Mcp>,
        #[command(flatten)]
        flags: Flags,
    },
    /// Have a model do small tasks, each in a folder of its own, and print which it did. `--set train` takes
    /// the tasks that prompts are tuned on alone, `--set test` those that they are not.
    Eval(Eval),
    /// Make one call of a tool by hand, as a session would, and print what came of it as JSON.
    Try {
        #[command(flatten)]
        flags: Flags,
        #[command(flatten)]
        trial: Trial,
    },
    /// Check the machine and the set-up, and say how to mend what is not well.
    Doctor(Flags),
    /// Write every session as a folder of plain files; the daemon must not be running.
    Export {
        #[command(flatten)]
        flags: Flags,
        /// Where to; what is there already is brought up to date.
        #[arg(long, value_name = "DIR")]
        to: PathBuf,
    },
    /// Run a command so that nothing of it outlives the daemon.
    #[command(hide = true)]
    Supervise {
        /// A directory to remove after the command.
        #[arg(long, value_name = "DIR")]
        scratch: Option<PathBuf>,
        /// Give the command namespaces of its own, with a network that is private or shared.
        #[arg(long, value_name = "NETWORK")]
        namespaces: Option<String>,
        /// The command begins a session by itself.
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
    /// Put on a sandbox and become a command.
    #[command(hide = true)]
    Confine {
        /// The command arrives on stdin.
        #[arg(long)]
        await_command: bool,
        policy: OsString,
        #[arg(last = true)]
        argv: Vec<OsString>,
    },
    /// Draw a diagram, whose source may be in several pieces.
    #[command(hide = true)]
    Draw {
        #[arg(last = true)]
        source: Vec<OsString>,
    },
}

/// A conversation.
#[derive(Clone, Debug, Args)]
pub(crate) struct Chat {
    /// Ask this, print the answer and exit; what comes on standard input is added to it.
    #[arg(short = 'p', long = "print", value_name = "QUESTION")]
    pub(crate) question: Option<String>,
    /// Print everything that happens instead, a line of JSON each.
    #[arg(long, requires = "question")]
    pub(crate) json: bool,
    /// Approve every tool that asks; without it they are refused.
    #[arg(long, requires = "question")]
    pub(crate) yes: bool,
    /// Go on with a session.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Which model is to answer.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// The daemon's socket; without it the newest that answers.
    #[arg(long, value_name = "SOCKET", env = "OPENAGENT_SOCKET")]
    pub(crate) socket: Option<PathBuf>,
    /// Keep nothing of what is typed.
    #[arg(long)]
    pub(crate) no_history: bool,
}

/// An evaluation of a model.
#[derive(Clone, Debug, Args)]
pub(crate) struct Eval {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// Which model; without it the one that sessions would use.
    #[arg(long, value_name = "PROVIDER/MODEL")]
    pub(crate) model: Option<String>,
    /// A task by name; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) task: Vec<String>,
    /// Tasks of your own instead: a folder with a TOML file each.
    #[arg(long, value_name = "DIR")]
    pub(crate) tasks: Option<PathBuf>,
    /// How long the model has for a task, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) seconds: u64,
    /// Print a line of JSON for each task.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print what was said and called on standard error.
    #[arg(long)]
    pub(crate) transcript: bool,
}

/// Which tasks of an evaluation.
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
    /// Reads the word for it.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::from_str(word, false).ok()
    }

    pub(crate) fn includes(self, other: Self) -> bool {
        self == Self::All || self == other
    }
}

/// Transcripts of other agents.
#[derive(Clone, Debug, Args)]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The agent that wrote them; without it the files are recognized by their content.
    #[arg(long, value_enum, value_name = "AGENT")]
    pub(crate) from: Option<Source>,
    /// Files, databases or folders; without them the places where the agents keep theirs.
    pub(crate) paths: Vec<PathBuf>,
}

/// From one store into another.
#[derive(Clone, Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The store to fill: `postgres://user@host/database`, from SQLite in the data directory; or `sqlite`,
    /// from PostgreSQL.
    #[arg(long, value_name = "STORE")]
    pub(crate) to: String,
    /// The database to copy from, for `--to sqlite`; without it the one that `store.url` names.
    #[arg(long, value_name = "URL")]
    pub(crate) from: Option<String>,
}

/// Where questions come from and where answers go.
#[derive(Clone, Debug, Args)]
pub(crate) struct Listen {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// A WAV file with samples of 16 bits instead of the microphone; `-` reads plain samples (16 kHz, one
    /// channel) from a recorder.
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A WAV file to write the spoken answers to instead of the loudspeaker.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// The daemon's address for the computer-use protocol; without it that of the configuration.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Nodes {
    /// Have a node give its sessions to others: idle ones at once, the others when their turns are over.
    /// Waits until it has none.
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

/// Where runs are controlled.
#[derive(Clone, Debug, Args)]
pub(crate) struct ControlPlane {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// The daemon's computer-use address; without it that of the configuration.
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The key of the runs API; without it `windie.runs_key` of the configuration.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The token of an install, where the daemon asks for one.
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
        /// List runs with this status: active, awaiting_worker, queued, running, paused, stopped, completed, failed.
        #[arg(long, value_name = "STATUS")]
        status: Option<String>,
        /// How many.
        #[arg(long, default_value_t = 50)]
        limit: u64,
    },
    /// Put a run in the queue of a workspace and print its id.
    Start {
        #[command(flatten)]
        plane: ControlPlane,
        /// The queue.
        #[arg(long, value_name = "NAME", default_value = "default")]
        workspace: String,
        /// The task.
        query: String,
        /// The agent that is to work.
        #[arg(long, value_name = "ID")]
        agent: Option<String>,
        /// An uploaded file to begin with; may be given several times.
        #[arg(long, value_name = "ID")]
        artifact: Vec<String>,
        /// Show what happens until the run is over.
        #[arg(long)]
        follow: bool,
    },
    /// Show what happens in a run until it is over; fails unless the run completes.
    Follow {
        #[command(flatten)]
        plane: ControlPlane,
        run: String,
        /// Print a line of JSON an event.
        #[arg(long)]
        json: bool,
    },
    /// Halt a run: no tool of it runs until it is resumed.
    Pause {
        #[command(flatten)]
        plane: ControlPlane,
        run: String,
    },
    /// Let a run go on, or let the calls run that wait for a person.
    Resume {
        #[command(flatten)]
        plane: ControlPlane,
        run: String,
    },
    /// Say who may act in a run: agent_only, shared_control or human_override.
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
        /// Only those of one workspace.
        #[arg(long, value_name = "NAME", requires = "all")]
        workspace: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mcp {
    /// List the servers of the configuration and of this folder's `.mcp.json`.
    List {
        #[command(flatten)]
        flags: Flags,
    },
    /// Add a server to the configuration file; the daemon takes it at its next start.
    Add {
        #[command(flatten)]
        flags: Flags,
        name: String,
        /// The address of a server that is reached over HTTP.
        #[arg(long, value_name = "URL", conflicts_with = "command")]
        url: Option<String>,
        /// A variable of its environment; may be given several times.
        #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
        env: Vec<String>,
        /// A header of every request; may be given several times.
        #[arg(long, value_name = "NAME=VALUE", requires = "url")]
        header: Vec<String>,
        /// Seconds that a call may take without a sign of progress.
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<u64>,
        /// The program and its arguments, after `--`.
        #[arg(last = true, required_unless_present = "url")]
        command: Vec<String>,
    },
    /// Take a server out of the configuration file.
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
    /// Log in at a server over HTTP, in the browser; the daemon takes the login at once.
    Login(Login),
    /// Forget the login at a server.
    Logout {
        #[command(flatten)]
        flags: Flags,
        name: String,
    },
    /// Allow the servers of a folder's `.mcp.json`, as it is now, to be started.
    Allow {
        #[command(flatten)]
        flags: Flags,
        /// The folder; without it this one.
        folder: Option<PathBuf>,
    },
}

/// A login at an MCP server.
#[derive(Clone, Debug, Args)]
pub(crate) struct Login {
    #[command(flatten)]
    pub(crate) flags: Flags,
    pub(crate) name: String,
    /// A permission to ask for, in place of those that the server names; may be given several times.
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// Only print the address.
    #[arg(long)]
    pub(crate) no_browser: bool,
}

/// A worker of a fleet.
#[derive(Clone, Debug, Args)]
pub(crate) struct Worker {
    #[command(flatten)]
    pub(crate) plane: ControlPlane,
    /// The queue to take runs from.
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) workspace: String,
    /// How many runs to carry out at once.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=JOBS_LIMIT))]
    pub(crate) jobs: u64,
    /// The name of this worker, which must be its own in the fleet and the same after a restart; without
    /// it `worker-` and the name of the machine.
    #[arg(long, value_name = "ID")]
    pub(crate) id: Option<String>,
    /// The user that the worker's conversations belong to; without it the name of the worker.
    #[arg(long, value_name = "USER")]
    pub(crate) user: Option<String>,
    /// The folder that tools work in; without it this one.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// The daemon that carries runs out as its sessions: an address, or `own` for the one that serves the data
    /// directory, which is started if it does not run. Without it the one at --url, or without that `own`.
    #[arg(long, value_name = "URL")]
    pub(crate) daemon: Option<String>,
    /// Milliseconds between heartbeats.
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    pub(crate) interval_ms: u64,
}

/// One call of a tool.
#[derive(Clone, Debug, Args)]
pub(crate) struct Trial {
    /// The tool, as `quintet tools` names it.
    pub(crate) tool: String,
    /// Arguments of the tool, as JSON.
    #[arg(default_value = "{}")]
    pub(crate) input: String,
    /// Where it works, unless here.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Show what a person would be asked about it instead; nothing is changed.
    #[arg(long)]
    pub(crate) assess: bool,
    /// Make it so often, with everything that is remembered in between.
    #[arg(long, default_value_t = 1)]
    pub(crate) times: u32,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Models {
    /// Fetch the weights of a model that runs here; goes on where an earlier try ended.
    Pull {
        #[command(flatten)]
        flags: Flags,
        /// Which: a chat model, a sense (`embeddings`, `ocr`, `transcription`, `speech`, …), or `senses` for all senses that are on; without
        /// a name the chat model that sessions would use.
        name: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Put a key there. It is asked for, or read from a pipe; it is never an argument.
    Set {
        #[command(flatten)]
        flags: Flags,
        /// A provider, as `quintet models --all` or the configuration names it, or `search`.
        name: String,
        /// Whatever else is given, so that the complaint about it need not repeat it.
        #[arg(hide = true)]
        more: Vec<OsString>,
    },
    /// Name the keys that are there.
    List,
    /// Remove a key.
    Forget {
        /// The provider.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Installs {
    /// Name them: whose they are, since when, and when they were last seen.
    List(Flags),
    /// Revoke a token: requests with it are refused from then on.
    Revoke {
        #[command(flatten)]
        flags: Flags,
        /// Which, as the list names it.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// Search the messages of people, models and tools in all sessions, also while the daemon runs.
    Find(Find),
}

/// A search in all sessions.
#[derive(Clone, Debug, Args)]
pub(crate) struct Find {
    #[command(flatten)]
    pub(crate) flags: Flags,
    /// What to search for; no character has a special meaning.
    #[arg(required = true)]
    pub(crate) words: Vec<String>,
    /// The most messages.
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
    /// Where sessions are kept.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Where a protocol listens: `harness=127.0.0.1:8787`, or `harness=off`.
    #[arg(long, value_name = "PROTOCOL=ADDRESS")]
    pub(crate) listen: Vec<String>,
    /// Any other value: `approval.on_deny=fail`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// How logs look on standard error.
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
