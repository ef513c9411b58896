//! A model server on loopback whose answers are scripted in the prompt.
//!
//! The server implements OpenAI chat completions, streaming and not. Its answer is in the last user message
//! that has a script, `anything {{script: [STEP, STEP, …]}} anything`: one step answers
//! one call, and past the end the answer is "done". Without a script it echoes the last user
//! message. A step is an object with any of:
//!
//! | key | meaning |
//! |---|---|
//! | `text`, or `deltas: [..]` | text, in one piece or in several |
//! | `repeat: N` | send the deltas N times over |
//! | `thought` | reasoning before the answer |
//! | `tools: [{name, args, id?}]` | tool calls, their arguments in two pieces |
//! | `delay_ms`, `gap_ms` | wait before the first byte, between pieces |
//! | `hold_until: FILE` | the last piece of text waits until that file exists |
//! | `status`, `message`, `code` | answer with an HTTP error instead |
//! | `fail_times: N` | with `status`: fail N times, then answer |
//! | `retry_after` | with `status`: the header, in seconds |
//! | `hang`, `cut` | after the pieces, and before the end, stall or drop the connection |
//! | `garbage` | send a line that is not JSON after the pieces |
//! | `plain` | answer with one JSON body although a stream was requested |
//! | `usage: [read, written, cached?, reasoning?]` | token counts to report |
//!
//! Text to be spoken becomes audio with a sample for each of its bytes.

mod frame_stream;
mod response;
mod script;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::script::Step;

/// A running server. Dropping it stops the server and closes its connections.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
    _running: watch::Sender<()>,
}

impl ModelServer {
    /// Starts a server on any free port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (running, stopped) = watch::channel(());
        let shared = Arc::new(Shared::new(stopped));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, _tasks: tasks, _running: running })
    }

    /// The base URL for a provider: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of the requests so far, oldest first.
    pub fn calls(&self) -> Vec<Value> {
        lock(&self.shared.calls).clone()
    }

    /// Waits until exactly this many answers are being streamed.
    pub async fn streaming(&self, answers: usize) {
        let mut count = self.shared.streaming.subscribe();
        // The sender lives in `shared`, so this cannot fail.
        let _ = count.wait_for(|now| *now == answers).await;
    }

    /// Number of accepted connections.
    pub fn connections(&self) -> usize {
        *lock(&self.shared.connections)
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelServer({})", self.base_url())
    }
}

struct Shared {
    calls: Mutex<Vec<Value>>,
    connections: Mutex<usize>,
    /// Number of times that each scripted failure was sent.
    failed: Mutex<HashMap<String, u64>>,
    streaming: watch::Sender<usize>,
    stopped: watch::Receiver<()>,
}

impl Shared {
    fn new(stopped: watch::Receiver<()>) -> Self {
        Self {
            calls: Mutex::default(),
            connections: Mutex::default(),
            failed: Mutex::default(),
            streaming: watch::Sender::new(0),
            stopped,
        }
    }

    /// True if a scripted failure is still to be sent.
    fn fails(&self, step: &Step, body: &Value) -> bool {
        let key = format!("{step:?}{}", body["messages"]);
        let mut failed = lock(&self.failed);
        let times = failed.entry(key).or_default();
        *times += 1;
        step.status.is_some() && step.fail_times.is_none_or(|limit| *times <= limit)
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let counted = Arc::clone(&shared);
    let listener = listener.tap_io(move |io| {
        *lock(&counted.connections) += 1;
        let _ = io.set_nodelay(true);
    });
    let mut stopped = shared.stopped.clone();
    let routes = Router::new()
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/audio/speech", post(speech))
        .layer(DefaultBodyLimit::disable())
        .with_state(shared);
    let until = async move { while stopped.changed().await.is_ok() {} };
    let _ = axum::serve(listener, routes).with_graceful_shutdown(until).await;
}

/// Audio whose samples are the bytes of the text.
async fn speech(body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = body["input"].as_str().unwrap_or_default();
    let samples: Vec<u8> = text.bytes().flat_map(|byte| [byte, 0]).collect();
    Response::new(Body::from(samples))
}

async fn models() -> Response {
    let fake = json!({"id": "fake", "object": "model", "owned_by": "test"});
    whole(StatusCode::OK, &json!({"object": "list", "data": [fake]}))
}

async fn chat(State(shared): State<Arc<Shared>>, raw: Bytes) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&raw) else {
        return whole(StatusCode::BAD_REQUEST, &json!({"error": {"message": "not JSON"}}));
    };
    lock(&shared.calls).push(body.clone());
    let step = script::step_for(&body);
    tokio::time::sleep(step.delay).await;
    if shared.fails(&step, &body) {
        return failure(&step);
    }
    if step.plain || body["stream"] != json!(true) {
        return whole(StatusCode::OK, &response::whole(&step, &body));
    }
    let frames = response::Frames::new(&step, &body);
    let stream = frame_stream::FrameStream::new(frames, &step, &shared);
    respond(StatusCode::OK, "text/event-stream", Body::from_stream(stream))
}

fn failure(step: &Step) -> Response {
    let status = step.status.and_then(|status| StatusCode::from_u16(status).ok());
    let error = json!({"type": "fake_error", "message": step.message, "code": step.code});
    let mut response =
        whole(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &json!({"error": error}));
    if let Some(value) = step.retry_after.as_deref().and_then(|text| text.parse().ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

fn whole(status: StatusCode, value: &Value) -> Response {
    respond(status, "application/json", Body::from(value.to_string()))
}

fn respond(status: StatusCode, mime: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, axum::http::HeaderValue::from_static(mime));
    response
}

#[cfg(test)]
mod tests;
