//! The time from starting `quintet acp` until an editor has its session, with and without a running
//! daemon.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::Plan;
use crate::clock::{median, percentile};
use crate::rig::Rig;
use crate::table::Row;

const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let socket = rig.data("editor-start-acp.sock");
    let set = format!("listen.acp={}", socket.display());
    let mut samples: [Vec<f64>; 2] = Default::default();
    let [running, started] = &mut samples;
    let daemon = rig.daemon_with("editor-start", &[&set]).await?;
    for _ in 0..plan.rounds(30, 8) {
        running.push(until_session(rig, &set).await?);
    }
    daemon.stop().await?;
    for _ in 0..plan.rounds(15, 5) {
        started.push(until_session(rig, &set).await?);
        stop_daemon(&socket).await?;
    }
    let row = |what: &str, samples: &[f64]| {
        let note = format!("90 of 100 within {:.1} ms", percentile(samples, 0.9));
        Row::new(what).quintet(median(samples)).note(note)
    };
    Ok(vec![
        row("`quintet acp` -> session/new is answered, daemon runs, ms", running),
        row("`quintet acp` -> session/new is answered, daemon is started, ms", started),
    ])
}

/// Starts the program like an editor; returns the milliseconds until there is a session.
async fn until_session(rig: &Rig, set: &str) -> Result<f64> {
    let config = rig.config("editor-start", "")?;
    let mut command = Command::new(rig.quintet());
    command.arg("acp").arg("--config").arg(config).args(["--set", set]);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/nonexistent");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let began = Instant::now();
    let mut process = command.kill_on_drop(true).spawn()?;
    let mut stdin = process.stdin.take().context("no stdin")?;
    let mut stdout = BufReader::new(process.stdout.take().context("no stdout")?).lines();
    let requests = [
        ("initialize", json!({ "protocolVersion": 1 })),
        ("session/new", json!({ "cwd": rig.workspace(), "mcpServers": [] })),
    ];
    for (id, (method, params)) in (1..).zip(requests) {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        stdin.write_all(format!("{request}\n").as_bytes()).await?;
        loop {
            let line = timeout(ANSWER_TIMEOUT, stdout.next_line()).await??;
            let line = line.context("the program ended")?;
            let message: Value = serde_json::from_str(&line)?;
            if message["id"] == id {
                message.get("result").with_context(|| line.clone())?;
                break;
            }
        }
    }
    let took = began.elapsed().as_secs_f64() * 1000.0;
    drop(stdin);
    timeout(STOP_TIMEOUT, process.wait()).await.context("it does not end")??;
    Ok(took)
}

/// Stops the daemon that was started for an editor.
async fn stop_daemon(socket: &Path) -> Result<()> {
    let peer = UnixStream::connect(socket).await?.peer_cred()?;
    let pid = peer.pid().and_then(Pid::from_raw).context("no pid")?;
    kill_process(pid, Signal::TERM)?;
    let began = Instant::now();
    while is_alive(pid) {
        if began.elapsed() > STOP_TIMEOUT {
            bail!("the daemon does not end");
        }
        sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

/// False once the process has ended, even if it was not waited for.
fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}
