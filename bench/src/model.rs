//! The fake model: chat completions on plain sockets, mostly pre-rendered.
//!
//! `GET /log` returns and clears the log of calls; `GET /count` returns its size.

mod family;
mod render;
mod request;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{MissedTickBehavior, interval};

use crate::script::Script;
use crate::{child, clock};
use family::Family;
use request::Request;

/// Bytes per write if there is no gap between deltas.
const BURST_BYTES: usize = 64 * 1024;

/// One call of the model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) id: u64,
    /// When its first byte arrived.
    pub(crate) arrived: u64,
    /// When all of it arrived.
    pub(crate) read: u64,
    /// The length of the request.
    pub(crate) bytes: usize,
    /// The time before each delta was written, if there are gaps between them, or before the tool
    /// call was.
    pub(crate) writes: Vec<u64>,
    /// The time before the end of the answer was written; 0 until then.
    pub(crate) done: u64,
}

/// The number of calls in the log, and the arrival of the last one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Count {
    pub(crate) calls: usize,
    pub(crate) last: u64,
}

type Log = Arc<Mutex<Vec<Call>>>;

/// `quintet-bench model`.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    child::print_ready_line(listener.local_addr()?)?;
    let log = Log::default();
    let accept = async {
        loop {
            let (stream, _) = listener.accept().await?;
            let log = Arc::clone(&log);
            // A client that disconnects only ends its own connection.
            tokio::spawn(async move { drop(serve_connection(stream, &log).await) });
        }
    };
    tokio::select! {
        done = accept => done,
        () = child::wait_for_parent_exit() => Ok(()),
    }
}

async fn serve_connection(mut stream: TcpStream, log: &Log) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut rest = Vec::new();
    while let Some(request) = request::read(&mut stream, &mut rest).await? {
        let path = request.path.as_str();
        if let Some(family) = Family::of(path) {
            write_family(&mut stream, &request, family).await?;
            continue;
        }
        match path {
            "/v1/chat/completions" => answer(&mut stream, &request, log).await?,
            "/log" => {
                let calls = std::mem::take(&mut *lock(log));
                stream.write_all(&render::json(&serde_json::to_vec(&calls)?)).await?;
            }
            "/count" => stream.write_all(&render::json(&serde_json::to_vec(&count(log))?)).await?,
            _ => stream.write_all(&render::json(b"{\"data\":[]}")).await?,
        }
    }
    Ok(())
}

async fn answer(stream: &mut TcpStream, request: &Request, log: &Log) -> Result<()> {
    let script = Script::find(&request.body).unwrap_or_default();
    begin(log, script.id, request);
    let mut out = render::begin();
    if script.hang {
        stream.write_all(&out).await?;
        let _ = stream.read(&mut [0]).await;
        anyhow::bail!("the client gave up");
    }
    if let Some(tool) = script.call {
        render::call(&mut out, script.id, tool);
        finish(log, script.id, vec![clock::now()]);
        return Ok(stream.write_all(&out).await?);
    }
    let mut writes = Vec::new();
    if script.gap_us == 0 {
        burst(stream, script, &mut out).await?;
    } else {
        stream.write_all(&out).await?;
        out.clear();
        writes = pace(stream, script).await?;
    }
    render::end(&mut out, request.body.len(), script.deltas);
    // Recorded before the write, so that a client that has read the end finds it in the log.
    finish(log, script.id, writes);
    Ok(stream.write_all(&out).await?)
}

/// Writes the answer in the format of another family, as fast as possible.
async fn write_family(stream: &mut TcpStream, request: &Request, family: Family) -> Result<()> {
    let script = Script::find(&request.body).unwrap_or_default();
    let mut out = render::head();
    render::events(&mut out, &family.begin());
    for number in 0..script.deltas {
        render::events(&mut out, &[family.delta(number)]);
        if out.len() >= BURST_BYTES {
            stream.write_all(&out).await?;
            out.clear();
        }
    }
    render::events(&mut out, &family.end(script.deltas));
    render::close(&mut out);
    Ok(stream.write_all(&out).await?)
}

async fn burst(stream: &mut TcpStream, script: Script, out: &mut Vec<u8>) -> Result<()> {
    for number in 0..script.deltas {
        render::delta(out, number);
        if out.len() >= BURST_BYTES {
            stream.write_all(out).await?;
            out.clear();
        }
    }
    Ok(())
}

async fn pace(stream: &mut TcpStream, script: Script) -> Result<Vec<u64>> {
    let mut ticks = interval(Duration::from_micros(script.gap_us));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut writes = Vec::with_capacity(script.deltas);
    let mut out = Vec::new();
    for number in 0..script.deltas {
        ticks.tick().await;
        out.clear();
        render::delta(&mut out, number);
        writes.push(clock::now());
        stream.write_all(&out).await?;
    }
    Ok(writes)
}

/// Adds a call to the log.
fn begin(log: &Log, id: u64, request: &Request) {
    let Request { arrived, read, ref body, .. } = *request;
    lock(log).push(Call { id, arrived, read, bytes: body.len(), writes: Vec::new(), done: 0 });
}

/// Records the end of the last call with this id.
fn finish(log: &Log, id: u64, writes: Vec<u64>) {
    if let Some(call) = lock(log).iter_mut().rev().find(|call| call.id == id) {
        call.writes = writes;
        call.done = clock::now();
    }
}

fn count(log: &Log) -> Count {
    let log = lock(log);
    Count { calls: log.len(), last: log.iter().map(|call| call.arrived).max().unwrap_or(0) }
}

fn lock(log: &Log) -> std::sync::MutexGuard<'_, Vec<Call>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
