//! The baseline: a proxy that only parses every event of the model and writes it again. Built from
//! the same libraries as the daemon.
//!
//! With a log it is also durable: a line is appended and synced before a request is forwarded, and
//! another before the first text is passed on.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fs::File;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::Result;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use axum::{Router, serve as serve_http};
use futures_util::stream;
use memchr::memchr;
use rustls::crypto::ring;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::block_in_place;

use crate::child;

#[derive(Clone)]
struct Upstream {
    client: reqwest::Client,
    url: Arc<str>,
    log: Option<Arc<File>>,
}

#[derive(Deserialize)]
struct Question {
    text: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    choices: Vec<Choice<'a>>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
struct Out<'a> {
    delta: &'a str,
}

/// `quintet-bench proxy --model URL [--log FILE]`.
pub(crate) async fn serve(url: &str, log: Option<&str>) -> Result<()> {
    let url = format!("{url}/v1/chat/completions").into();
    let log = log.map(|path| File::create(path).map(Arc::new)).transpose()?;
    let router = Router::new()
        .route("/chat", post(forward_message))
        .layer(DefaultBodyLimit::disable())
        .with_state(Upstream { client: client()?, url, log });
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    child::print_ready_line(listener.local_addr()?)?;
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let served = async { serve_http(listener, router).await };
    tokio::select! {
        done = served => Ok(done?),
        () = child::wait_for_parent_exit() => Ok(()),
    }
}

/// A client without certificates: nothing here is encrypted.
fn client() -> Result<reqwest::Client> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let builder = reqwest::Client::builder().tls_backend_preconfigured(tls);
    Ok(builder.no_proxy().tcp_nodelay(true).build()?)
}

async fn forward_message(State(upstream): State<Upstream>, body: Bytes) -> Response {
    match forward(&upstream, &body).await {
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

async fn forward(upstream: &Upstream, body: &[u8]) -> Result<Response> {
    let question: Question = serde_json::from_slice(body)?;
    append_log(upstream.log.as_deref(), body)?;
    let messages = json!([{ "role": "user", "content": question.text }]);
    let request = json!({ "model": "fake", "stream": true, "messages": messages });
    let response = upstream
        .client
        .post(&*upstream.url)
        .header("content-type", "application/json")
        .header("authorization", "Bearer test")
        .body(serde_json::to_vec(&request)?)
        .send()
        .await?
        .error_for_status()?;
    let state = (response, Vec::new(), upstream.log.clone());
    let frames = stream::unfold(state, |(mut response, mut rest, mut log)| async move {
        let bytes = response.chunk().await.ok()??;
        let mut out = Vec::with_capacity(bytes.len());
        rest.extend_from_slice(&bytes);
        take_lines(&mut rest, &mut out);
        if !out.is_empty() {
            append_log(log.take().as_deref(), &out).ok()?;
        }
        Some((Ok::<_, Infallible>(Bytes::from(out)), (response, rest, log)))
    });
    let kind = (header::CONTENT_TYPE, "text/event-stream");
    Ok(([kind], Body::from_stream(frames)).into_response())
}

/// Appends a line to the log, if there is one, and returns when it is on disk.
fn append_log(log: Option<&File>, line: &[u8]) -> Result<()> {
    let Some(mut log) = log else { return Ok(()) };
    block_in_place(|| {
        log.write_all(&[line, b"\n"].concat())?;
        Ok(log.sync_data()?)
    })
}

fn take_lines(rest: &mut Vec<u8>, out: &mut Vec<u8>) {
    let mut start = 0;
    while let Some(end) = memchr(b'\n', &rest[start..]) {
        if let Some(data) = rest[start..start + end].strip_prefix(b"data: ") {
            write_anew(data, out);
        }
        start += end + 1;
    }
    rest.drain(..start);
}

fn write_anew(data: &[u8], out: &mut Vec<u8>) {
    if data == b"[DONE]" {
        return out.extend_from_slice(b"data: [DONE]\n\n");
    }
    let Ok(event) = serde_json::from_slice::<Event<'_>>(data) else { return };
    for text in event.choices.iter().filter_map(|choice| choice.delta.content.as_deref()) {
        out.extend_from_slice(b"data: ");
        let _ = serde_json::to_writer(&mut *out, &Out { delta: text });
        out.extend_from_slice(b"\n\n");
    }
}
