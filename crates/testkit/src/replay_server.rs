//! A server that answers every request with the same bytes and records the requests.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The reply to every request.
#[derive(Clone, Debug)]
pub struct CannedReply {
    /// The status.
    pub status: u16,
    /// The type of the body.
    pub mime: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl CannedReply {
    /// A stream of events.
    pub fn stream(body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, mime: "text/event-stream", body: body.into() }
    }

    /// A JSON body with a status.
    pub fn json(status: u16, body: &str) -> Self {
        Self { status, mime: "application/json", body: body.into() }
    }
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers, by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body, if it is JSON.
    pub body: Value,
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct ReplayServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    reply: CannedReply,
    asked: Mutex<Vec<RecordedRequest>>,
}

impl ReplayServer {
    /// Starts a server on any free port.
    pub async fn start(reply: CannedReply) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { reply, asked: Mutex::default() });
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Ok(Self { address, shared, _tasks: tasks })
    }

    /// The URL: `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far, oldest first.
    pub fn asked(&self) -> Vec<RecordedRequest> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    (method, uri, headers): (Method, Uri, HeaderMap),
    body: Bytes,
) -> Response {
    let text = |(name, value): (&HeaderName, &HeaderValue)| {
        Some((name.to_string(), value.to_str().ok()?.to_owned()))
    };
    let asked = RecordedRequest {
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers.iter().filter_map(text).collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    shared.asked.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
    let mut response = Response::new(Body::from(shared.reply.body.clone()));
    *response.status_mut() = StatusCode::from_u16(shared.reply.status).unwrap_or_default();
    let mime = HeaderValue::from_static(shared.reply.mime);
    response.headers_mut().insert(header::CONTENT_TYPE, mime);
    response
}
