//! The measured processes: started, observed through `/proc`, and ended by their handles.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::time::{sleep, timeout};

const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
/// Linux reports CPU time in hundredths of a second, whatever its own clock ticks.
const TICK_MS: f64 = 10.0;
/// Time without CPU use after which a process counts as idle.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A process. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    pid: u32,
    _stdout: BufReader<ChildStdout>,
    /// The address of the model, the proxy or the daemon's harness protocol.
    pub(crate) address: SocketAddr,
    listeners: BTreeMap<String, String>,
    /// The start time, by the clock that all processes share.
    pub(crate) started: u64,
    /// The time until the ready line.
    pub(crate) ready: Duration,
}

impl Child {
    /// Starts a program and waits for its ready line.
    pub(crate) async fn start(program: &Path, arguments: &[&str], log: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", "/nonexistent");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(log)?);
        let (started, began) = (crate::clock::now(), Instant::now());
        let mut process = command
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} (is it built?)", program.display()))?;
        let mut stdout = BufReader::new(process.stdout.take().context("no stdout")?);
        let mut line = String::new();
        let read =
            timeout(START_TIMEOUT, stdout.read_line(&mut line)).await.context("never ready")??;
        let ready = began.elapsed();
        if read == 0 {
            bail!("{} ended at once: {}", program.display(), std::fs::read_to_string(log)?);
        }
        let pid = process.id().context("it is gone")?;
        let Ready { listeners } = serde_json::from_str(&line).with_context(|| line.clone())?;
        let main = listeners.get("bench").or_else(|| listeners.get("harness"));
        let address = plain(main.with_context(|| format!("no listener in {line}"))?)?;
        Ok(Self { process, pid, _stdout: stdout, address, listeners, started, ready })
    }

    /// The address of a protocol in the daemon's ready line.
    pub(crate) fn listener(&self, protocol: &str) -> Result<&str> {
        let found = self.listeners.get(protocol);
        found.map(String::as_str).with_context(|| format!("{protocol} is off"))
    }

    /// The address of a protocol over HTTP.
    pub(crate) fn http(&self, protocol: &str) -> Result<SocketAddr> {
        plain(self.listener(protocol)?)
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks the process to end, and waits until it has.
    pub(crate) async fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw).context("no pid")?;
        kill_process(pid, Signal::TERM)?;
        timeout(STOP_TIMEOUT, self.process.wait()).await.context("it does not end")??;
        Ok(())
    }

    /// Kills the process.
    pub(crate) async fn kill(mut self) -> Result<()> {
        Ok(timeout(STOP_TIMEOUT, self.process.kill()).await??)
    }

    /// CPU time so far, in milliseconds.
    pub(crate) fn cpu_ms(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        // The name may contain anything, but nothing after it contains a parenthesis.
        let (_, fields) = stat.rsplit_once(')').context("stat")?;
        let ticks = fields.split_whitespace().skip(11).take(2).map(str::parse::<f64>);
        Ok(ticks.sum::<Result<f64, _>>()? * TICK_MS)
    }

    /// Waits until the process is idle.
    pub(crate) async fn settle(&self) -> Result<()> {
        let settled = async {
            let mut before = self.cpu_ms()?;
            loop {
                sleep(IDLE_INTERVAL).await;
                let now = self.cpu_ms()?;
                if now <= before {
                    return Ok(());
                }
                before = now;
            }
        };
        timeout(SETTLE_TIMEOUT, settled).await.unwrap_or(Ok(()))
    }

    /// Bytes that the process had written to storage: `write_bytes` of `/proc/PID/io`, which counts whole
    /// pages, once for each time that they became dirty, without `cancelled_write_bytes`, which were truncated
    /// or deleted before they were written.
    pub(crate) fn written(&self) -> Result<f64> {
        let io = std::fs::read_to_string(format!("/proc/{}/io", self.pid))?;
        let bytes = |name: &'static str| -> Result<f64> {
            let line = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            Ok(line.context(name)?.parse()?)
        };
        Ok(bytes("write_bytes")? - bytes("cancelled_write_bytes")?)
    }

    /// Memory in use, in megabytes.
    pub(crate) fn rss_mb(&self) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("VmRSS")?;
        let kb: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kb / 1024.0)
    }
}

/// The ready line of a program.
#[derive(Deserialize)]
struct Ready {
    listeners: BTreeMap<String, String>,
}

fn plain(url: &str) -> Result<SocketAddr> {
    let host = url.strip_prefix("http://").with_context(|| format!("{url} is not HTTP"))?;
    Ok(host.parse()?)
}

/// For the model and the proxy: prints a ready line like the daemon's.
pub(crate) fn print_ready_line(address: SocketAddr) -> Result<()> {
    let listeners = json!({ "bench": format!("http://{address}") });
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", json!({ "ready": true, "listeners": listeners }))?;
    Ok(stdout.flush()?)
}

/// For the model and the proxy: returns when the parent process has ended.
pub(crate) async fn wait_for_parent_exit() {
    let wait = || std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
    let _ = tokio::task::spawn_blocking(wait).await;
}
