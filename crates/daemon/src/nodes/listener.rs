//! The listener for other nodes and `quintet nodes`. Every request needs the nodes' token.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use quintet_dialects::transport::access::{Access, Denied, Token};
use quintet_dialects::transport::listener::serve as serve_http;
use quintet_kernel::port::{NodeStatus, Nodes, StorageError};
use quintet_runtime::Runtime;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The path for commands to sessions of this node.
pub(super) const FORWARD: &str = "/v1/forward";
/// The path for listing and draining nodes.
pub(super) const NODES: &str = "/v1/nodes";

/// Maximum length of a request, in bytes: a message with its text; files are blobs in the store.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// The address that a node binds for others.
pub(super) struct NodeListener {
    socket: TcpListener,
    host: String,
}

impl NodeListener {
    /// Binds the address in `node.advertise`.
    pub(super) async fn bind(advertise: &str) -> Result<Self> {
        let wrong = || format!("node.advertise = {advertise:?} is not like http://HOST:PORT");
        let url: Uri = advertise.parse().with_context(wrong)?;
        let (Some("http"), Some(host), Some(port)) = (url.scheme_str(), url.host(), url.port_u16())
        else {
            bail!(wrong());
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let socket = TcpListener::bind((host.as_str(), port)).await;
        let socket = socket.with_context(|| format!("node.advertise = {advertise}"))?;
        Ok(Self { socket, host })
    }

    /// Serves other nodes until the daemon closes.
    pub(super) async fn serve(self, node: ServedNode, token: String, closing: CancellationToken) {
        let access = Access {
            token: Some(Token::new(token)),
            protocol_token: None,
            hosts: vec![self.host],
            origins: Vec::new(),
            has_own_auth: |_| false,
            refuse: refused,
        };
        serve_http(self.socket, router(node), access, closing).await;
    }
}

/// The node behind the listener.
#[derive(Clone)]
pub(super) struct ServedNode {
    pub(super) runtime: Runtime,
    pub(super) nodes: Arc<dyn Nodes>,
}

fn router(node: ServedNode) -> Router {
    Router::new()
        .route(FORWARD, post(forward))
        .route(NODES, get(list).post(drain))
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .with_state(node)
}

async fn forward(State(node): State<ServedNode>, body: Bytes) -> Vec<u8> {
    node.runtime.serve_node(&body).await
}

async fn list(State(node): State<ServedNode>) -> Response {
    match node.nodes.list().await {
        Ok(nodes) => {
            let nodes: Vec<Value> = nodes.iter().map(status).collect();
            json!({ "nodes": nodes }).to_string().into_response()
        }
        Err(error) => failed(&error),
    }
}

async fn drain(State(node): State<ServedNode>, body: Bytes) -> Response {
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (Some(name), Some(draining)) = (asked["name"].as_str(), asked["draining"].as_bool()) else {
        return (StatusCode::BAD_REQUEST, "a name and whether it is draining are needed")
            .into_response();
    };
    match node.nodes.drain(name, draining).await {
        Ok(()) => "{}".into_response(),
        Err(error) => failed(&error),
    }
}

fn status(node: &NodeStatus) -> Value {
    json!({
        "name": node.name, "address": node.advertise, "alive": node.alive,
        "draining": node.draining, "sessions": node.sessions, "open_turns": node.open_turns,
        "heartbeat_age_ms": node.heartbeat_age_ms,
    })
}

fn failed(error: &StorageError) -> Response {
    let status = match error {
        StorageError::Missing(_) => StatusCode::NOT_FOUND,
        StorageError::Conflict(_)
        | StorageError::Fenced
        | StorageError::Held(_)
        | StorageError::Damaged(_)
        | StorageError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    (status, error.to_string()).into_response()
}

fn refused(denied: &Denied) -> Response {
    let status = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::FORBIDDEN);
    (status, denied.to_string()).into_response()
}
