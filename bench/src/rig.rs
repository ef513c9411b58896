//! The processes of a measurement: the model, the proxies, and daemons with their own data.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::from_slice;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::child::Child;
use crate::client::Client;
use crate::http::Conn;
use crate::model::{Call, Count};
use crate::script::Script;

/// After a turn the daemon still writes its session tree, which is part of the turn's cost.
const SETTLE_DELAY: Duration = Duration::from_millis(700);

/// Everything except the daemons.
#[derive(Debug)]
pub(crate) struct Rig {
    pub(crate) model: Child,
    pub(crate) proxy: Child,
    /// A proxy that syncs a log.
    pub(crate) logged: Child,
    dir: TempDir,
    bin: PathBuf,
    /// The measured daemon.
    quintet: PathBuf,
    ids: Cell<u64>,
    set: Vec<String>,
}

impl Rig {
    /// Starts the model and the proxies. The daemon is the one built next to this program, unless
    /// another is given.
    pub(crate) async fn new(set: Vec<String>, daemon: Option<PathBuf>) -> Result<Self> {
        raise_files()?;
        let own = std::env::current_exe()?;
        let bin = own.parent().context("no folder")?.to_owned();
        let target = bin.parent().context("no target folder")?;
        let dir = tempfile::Builder::new().prefix("bench-").tempdir_in(target)?;
        std::fs::create_dir(dir.path().join("workspace"))?;
        std::fs::write(dir.path().join("workspace/note.txt"), "A small file.\n")?;
        let model = Child::start(&own, &["model"], &dir.path().join("model.log")).await?;
        let url = format!("http://{}", model.address);
        let log = dir.path().join("proxy.log");
        let proxy = Child::start(&own, &["proxy", "--model", &url], &log).await?;
        let kept = dir.path().join("proxy-kept.log");
        let kept = kept.to_str().context("a strange path")?;
        let log = dir.path().join("logged.log");
        let arguments = ["proxy", "--model", &url, "--log", kept];
        let logged = Child::start(&own, &arguments, &log).await?;
        let quintet = daemon.unwrap_or_else(|| bin.join("quintet"));
        Ok(Self { model, proxy, logged, dir, bin, quintet, ids: Cell::new(0), set })
    }

    /// A script with a new id.
    pub(crate) fn script(&self, deltas: usize, gap_us: u64) -> Script {
        self.ids.set(self.ids.get() + 1);
        Script { id: self.ids.get(), deltas, gap_us, hang: false, call: None }
    }

    /// The workspace of the sessions.
    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// The program of the daemon.
    pub(crate) fn quintet(&self) -> &Path {
        &self.quintet
    }

    /// The data directory of this name.
    pub(crate) fn data(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Another proxy for one measurement.
    pub(crate) async fn another_proxy(&self) -> Result<Child> {
        let url = format!("http://{}", self.model.address);
        let program = self.bin.join("quintet-bench");
        let log = self.dir.path().join("other.log");
        Child::start(&program, &["proxy", "--model", &url], &log).await
    }

    /// Starts a daemon on the data directory of this name, which is created if it does not exist.
    pub(crate) async fn daemon(&self, data: &str) -> Result<Child> {
        self.daemon_with(data, &[]).await
    }

    /// Like `daemon`, with some settings.
    pub(crate) async fn daemon_with(&self, data: &str, set: &[&str]) -> Result<Child> {
        self.daemon_on(data, "", set).await
    }

    /// Like `daemon`, with additional configuration.
    pub(crate) async fn daemon_on(&self, data: &str, more: &str, set: &[&str]) -> Result<Child> {
        let config = self.config(data, more)?;
        let log = self.dir.path().join(format!("{data}.log"));
        let mut arguments = vec!["serve", "--config", config.to_str().context("a strange path")?];
        let set = self.set.iter().map(String::as_str).chain(set.iter().copied());
        arguments.extend(set.flat_map(|set| ["--set", set]));
        Child::start(&self.quintet, &arguments, &log).await
    }

    /// A client with a new session on a daemon.
    pub(crate) async fn session(&self, daemon: &Child) -> Result<Client> {
        Client::session(daemon.address, &self.workspace()).await
    }

    /// The calls of the model since the last log.
    pub(crate) async fn log(&self) -> Result<Vec<Call>> {
        let mut conn = Conn::open(self.model.address).await?;
        Ok(from_slice(&conn.call("GET", "/log", "").await?)?)
    }

    /// The number of calls of the model since the last log.
    pub(crate) async fn count(&self) -> Result<Count> {
        let mut conn = Conn::open(self.model.address).await?;
        Ok(from_slice(&conn.call("GET", "/count", "").await?)?)
    }

    /// Writes the configuration of a daemon for the data directory of this name, with more at its
    /// end.
    pub(crate) fn config(&self, data: &str, more: &str) -> Result<PathBuf> {
        let path = self.dir.path().join(format!("{data}.toml"));
        let text = format!(
            r#"data_dir = "{}"
default_model = "fake/fake"
[listen]
harness = "127.0.0.1:0"
jarvis = "off"
agent = "off"
agent_health = "off"
openai = "off"
windie = "127.0.0.1:0"
terminal = "{}"
[providers.fake]
api = "openai-chat"
base_url = "http://{}/v1"
api_key = "test"
[approval]
kinds = []
[verify]
auto = false
{more}"#,
            self.data(data).display(),
            self.dir.path().join(format!("{data}.sock")).display(),
            self.model.address
        );
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// The end of a daemon's log.
    pub(crate) fn log_tail(&self, data: &str) -> String {
        let log = self.dir.path().join(format!("{data}.log"));
        let text = std::fs::read_to_string(Path::new(&log)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(5)..].join("\n")
    }
}

/// CPU time of a process during some work, in milliseconds, without its idle use.
pub(crate) async fn cpu_of<T>(
    child: &Child,
    work: impl Future<Output = Result<T>>,
) -> Result<(T, f64)> {
    sleep(SETTLE_DELAY).await;
    let before = child.cpu_ms()?;
    sleep(SETTLE_DELAY).await;
    let (start, began) = (child.cpu_ms()?, Instant::now());
    let idle = (start - before) / SETTLE_DELAY.as_secs_f64();
    let done = work.await?;
    sleep(SETTLE_DELAY).await;
    let used = child.cpu_ms()? - start - idle * began.elapsed().as_secs_f64();
    Ok((done, used.max(0.0)))
}

/// A thousand followers need a thousand open files; children inherit the limit.
fn raise_files() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
