//! Starts and ends the daemon.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use quintet_testkit::model_server::ModelServer;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Client;
use crate::desktop::Desktop;
use crate::socket::Socket;

/// How long tests wait for what must happen; a busy machine takes its time.
pub(crate) const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// A daemon, its data and its model.
pub(crate) struct World {
    pub(crate) model: ModelServer,
    pub(crate) home: TempDir,
    workspace: PathBuf,
    config: String,
    /// True if the daemon uses the user's own weights, which are fetched once and not for every clone.
    weights: bool,
    running: Option<Running>,
}

struct Running {
    child: Child,
    base: String,
    desktop: String,
    agent: String,
    agent_health: String,
    windie: String,
    openai: String,
}

impl World {
    /// A running daemon that asks nobody and verifies nothing, unless `extra` says so.
    pub(crate) async fn start(extra: &str) -> Self {
        Self::start_with(extra, |home| home.join("data")).await
    }

    /// The same, with the weights of the senses.
    pub(crate) async fn start_with_weights(extra: &str) -> Self {
        let pull = ["models", "pull", "senses"];
        let pulled = quintet(&pull).env_remove("QUINTET_LOCAL_MODELS_DIR").output().unwrap();
        assert!(pulled.status.success(), "{}", String::from_utf8_lossy(&pulled.stderr));
        Self::start_in(extra, |home| home.join("data"), true).await
    }

    /// The same, with a data directory that is named from the folder the daemon starts in.
    pub(crate) async fn start_relative(extra: &str) -> Self {
        Self::start_with(extra, |_| PathBuf::from("data")).await
    }

    async fn start_with(extra: &str, data_dir: impl Fn(&Path) -> PathBuf) -> Self {
        Self::start_in(extra, data_dir, false).await
    }

    async fn start_in(extra: &str, data_dir: impl Fn(&Path) -> PathBuf, weights: bool) -> Self {
        let model = ModelServer::start().await.unwrap();
        let home = TempDir::new().unwrap();
        let workspace = home.path().join("workspace");
        std::fs::create_dir(&workspace).unwrap();
        let config = format!(
            "data_dir = {:?}\ndefault_model = \"fake/fake\"\n[listen]\nharness = \"127.0.0.1:0\"\njarvis = \"127.0.0.1:0\"\n\
             agent = \"127.0.0.1:0\"\nagent_health = \"127.0.0.1:0\"\nwindie = \"127.0.0.1:0\"\nconsole = \"127.0.0.1:0\"\n\
             openai = \"127.0.0.1:0\"\nterminal = {:?}\n\
             [providers.fake]\napi = \"openai-chat\"\nbase_url = \"{}\"\napi_key = \"sk-never-shown\"\n{}",
            data_dir(home.path()),
            home.path().join("terminal.sock"),
            model.base_url(),
            if extra.is_empty() {
                "[approval]\nkinds = []\n[verify]\nauto = false\n"
            } else {
                extra
            },
        );
        let mut world = Self { model, home, workspace, config, weights, running: None };
        world.restart();
        world
    }

    pub(crate) fn restart(&mut self) {
        let file = self.home.path().join("quintet.toml");
        std::fs::write(&file, &self.config).unwrap();
        let mut command = quintet(&["serve", "--config", file.to_str().unwrap()]);
        if self.weights {
            command.env_remove("QUINTET_LOCAL_MODELS_DIR");
        }
        let (child, ready) =
            serve(command.env("QUINTET_LOG", "warn").current_dir(self.home.path()));
        assert_eq!(ready["ready"], true);
        let base = ready["listeners"]["harness"].as_str().unwrap().to_owned();
        let desktop = ready["listeners"]["jarvis"].as_str().unwrap().to_owned();
        let address = |name: &str| ready["listeners"][name].as_str().unwrap().to_owned();
        let (agent, agent_health) = (address("agent"), address("agent_health"));
        let (windie, openai) = (address("windie"), address("openai"));
        self.running = Some(Running { child, base, desktop, agent, agent_health, windie, openai });
    }

    /// Replaces a part of the configuration, from the next start on.
    pub(crate) fn reconfigure(&mut self, part: &str, instead: &str) {
        assert!(self.config.contains(part), "{}", self.config);
        self.config = self.config.replace(part, instead);
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.running.as_ref().unwrap().base)
    }

    /// A client of the desktop-assistant protocol.
    pub(crate) fn desktop(&self) -> Desktop {
        Desktop::new(Client::new(&self.running.as_ref().unwrap().desktop))
    }

    /// A client of the agent-server protocol.
    pub(crate) async fn socket(&self) -> Socket {
        Socket::connect(&self.running.as_ref().unwrap().agent).await
    }

    /// Where the agent-server protocol is spoken.
    pub(crate) fn agent(&self) -> &str {
        &self.running.as_ref().unwrap().agent
    }

    /// A client of what says whether the daemon is well.
    pub(crate) fn health(&self) -> Client {
        Client::new(&self.running.as_ref().unwrap().agent_health)
    }

    /// Where the computer-use protocol is spoken.
    pub(crate) fn windie(&self) -> &str {
        &self.running.as_ref().unwrap().windie
    }

    /// A client of the OpenAI-compatible API.
    pub(crate) fn openai(&self) -> Client {
        Client::new(self.openai_address())
    }

    /// Where the OpenAI-compatible API is served.
    pub(crate) fn openai_address(&self) -> &str {
        &self.running.as_ref().unwrap().openai
    }

    /// Where the desktop-assistant protocol is spoken.
    pub(crate) fn jarvis(&self) -> &str {
        &self.running.as_ref().unwrap().desktop
    }

    /// Where it is said whether the daemon is well.
    pub(crate) fn agent_health(&self) -> &str {
        &self.running.as_ref().unwrap().agent_health
    }

    pub(crate) fn base(&self) -> &str {
        &self.running.as_ref().unwrap().base
    }

    /// Where the terminal protocol is spoken.
    pub(crate) fn terminal(&self) -> PathBuf {
        self.home.path().join("terminal.sock")
    }

    pub(crate) fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Where the daemon keeps everything.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let mut running = self.running.take().unwrap();
        running.child.kill().unwrap();
        running.child.wait().unwrap();
    }

    /// No file may grow beyond so many bytes from now on; as they like if not given.
    pub(crate) fn limit_files(&self, bytes: Option<u64>) {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(self.pid()), Resource::Fsize, limit).unwrap();
    }

    /// `kill`, and waits for the end.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM)
    }

    /// Sends a signal, and waits for the end.
    pub(crate) fn signal(&mut self, signal: Signal) -> ExitStatus {
        kill_process(self.pid(), signal).unwrap();
        self.running.take().unwrap().child.wait().unwrap()
    }

    /// The daemon's process.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.running.as_ref().unwrap().child)
    }

    /// What SQLite itself thinks of the database.
    pub(crate) fn integrity(&self) -> String {
        let path = self.home.path().join("data/quintet.db");
        let database = rusqlite::Connection::open(path).unwrap();
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = running.child.kill();
            let _ = running.child.wait();
        }
    }
}

/// Waits until something is so; a test that waits for it in vain fails.
pub(crate) async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(WAIT_LIMIT, waiting).await;
    assert!(waited.is_ok(), "in vain: {what}");
}

/// Waits until a file is there.
pub(crate) async fn appears(path: &Path) {
    until(&format!("{} appears", path.display()), async || path.exists()).await;
}

/// The program, without anything of the tests' environment that could configure it.
pub(crate) fn quintet(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quintet"));
    let foreign = |name: &str| {
        let ours = ["QUINTET_", "OPENAI_", "HARNESS_", "JARVIS_"]
            .iter()
            .any(|start| name.starts_with(start));
        ours || name.ends_with("_API_KEY")
    };
    for (name, _) in std::env::vars().filter(|(name, _)| foreign(name)) {
        command.env_remove(name);
    }
    // A model that the user has fetched would be used where none is configured.
    command.env("QUINTET_LOCAL_MODELS_DIR", "/nonexistent");
    // So would the keys of the user's own keyring.
    command.env("XDG_CONFIG_HOME", "/nonexistent").env_remove("DBUS_SESSION_BUS_ADDRESS");
    command.args(arguments);
    command
}

/// Starts a program. What it writes to standard error belongs to the output of the test, which is shown if the test
/// fails.
pub(crate) fn spawn(command: &mut Command) -> Child {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let errors = BufReader::new(child.stderr.take().unwrap());
    thread::spawn(move || {
        errors.lines().map_while(Result::ok).for_each(|line| eprintln!("{line}"));
    });
    child
}

/// Starts a daemon and waits until it has printed where it listens.
pub(crate) fn serve(command: &mut Command) -> (Child, Value) {
    let mut child = spawn(command.stdout(Stdio::piped()));
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, first_line) = channel();
    thread::spawn(move || {
        let mut line = String::new();
        let _ = stdout.read_line(&mut line);
        let _ = sender.send(line);
    });
    let line = first_line.recv_timeout(WAIT_LIMIT).unwrap_or_default();
    let ready = serde_json::from_str(&line).unwrap_or_else(|error| {
        let _ = child.kill();
        let _ = child.wait();
        panic!("the daemon did not start: {error}: {line}");
    });
    (child, ready)
}
