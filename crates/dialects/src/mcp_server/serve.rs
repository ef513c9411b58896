//! Serves clients over HTTP and on a Unix socket. A library implements the protocol.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use quintet_kernel::port::Error;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode,
    Implementation, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, serve_server_with_ct};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::decode::{self, InvalidCall, decode};
use super::sessions::{Failure, SessionTools};
use super::wire::{ToolSpec, tools};
use crate::transport::access::Denied;
use crate::transport::connection_limit::{ConnectionLimit, ConnectionPermit};
use crate::transport::uds::{PeerProcess, Socket};

/// The largest request body.
const BODY_LIMIT: usize = 8 * 1024 * 1024;
/// The interval of progress reports to a client that requested them.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);
/// The time for which clients may cache the list of tools, in milliseconds. The list changes only with the
/// version of the daemon.
const TOOLS_TTL_MS: u64 = 3_600_000;
/// Delay after accepting a connection failed.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

const INSTRUCTIONS: &str = "Agents that work on this machine. `run` gives a task and answers soon with \
the state of the turn: running (ask for its status with the cursor), input_required (answer its questions, \
after asking the user), completed, failed or cancelled.";

/// The routes of the HTTP listener.
pub(super) fn router(tools: SessionTools, closing: &CancellationToken) -> Router {
    // The access policy has already checked the host and the origin.
    let config = StreamableHttpServerConfig::default()
        .disable_allowed_hosts()
        .disable_allowed_origins()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(BODY_LIMIT)
        .with_cancellation_token(closing.child_token());
    let handler = Handler { tools, folder: None };
    let make = move || Ok(handler.clone());
    let service =
        StreamableHttpService::new(make, Arc::new(NeverSessionManager::default()), config);
    Router::new().route_service("/mcp", service)
}

/// The response to a request that the access policy refuses.
pub(super) fn refuse(denied: &Denied) -> Response {
    let status = StatusCode::from_u16(denied.status()).unwrap_or(StatusCode::FORBIDDEN);
    let error = json!({ "code": -32600, "message": denied.to_string() });
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
    (status, axum::Json(body)).into_response()
}

/// Serves clients of the socket until `closing` is cancelled.
pub(super) async fn run(socket: Socket, tools: SessionTools, closing: CancellationToken) {
    let (mut connections, mut tasks) = (ConnectionLimit::new(), JoinSet::new());
    loop {
        tokio::select! {
            () = closing.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            accepted = socket.accept() => match accepted {
                Ok((stream, peer)) => {
                    // A connection beyond the limit is closed at once.
                    if let Some(permit) = connections.admit().await.map(ConnectionPermit::new) {
                        tasks.spawn(serve_stream(stream, peer, tools.clone(), closing.clone(), permit));
                    }
                }
                Err(error) => {
                    tracing::error!(%error, "accepting an MCP connection failed");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
        }
    }
    drop(socket);
    while tasks.join_next().await.is_some() {}
}

async fn serve_stream(
    stream: UnixStream,
    peer: PeerProcess,
    tools: SessionTools,
    closing: CancellationToken,
    permit: ConnectionPermit,
) {
    let handler = Handler { tools, folder: peer.directory() };
    // The library cancels this token when the client disconnects.
    match serve_server_with_ct(handler, stream, closing.child_token()).await {
        Ok(service) => drop(service.waiting().await),
        Err(error) => tracing::debug!(%error, "an MCP client disconnected before the handshake"),
    }
    drop(permit);
}

/// One client's requests.
#[derive(Clone, Debug)]
struct Handler {
    tools: SessionTools,
    /// The client's working directory, if known.
    folder: Option<PathBuf>,
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let server = Implementation::new("quintet", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(server).with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let has_folder = self.folder.is_some();
        let tools = tools().into_iter().map(|spec| tool(spec, has_folder)).collect();
        let mut list = ListToolsResult::with_all_items(tools);
        (list.ttl_ms, list.cache_scope) = (Some(TOOLS_TTL_MS), Some(CacheScope::Private));
        Ok(list)
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(call.arguments.unwrap_or_default());
        let request = match decode(&call.name, arguments) {
            Ok(request) => request,
            Err(InvalidCall::UnknownTool(name)) => {
                return Err(ErrorData::invalid_params(format!("unknown tool: {name}"), None));
            }
            Err(InvalidCall::UnknownSession(session)) => return Err(unknown_session(&session)),
            Err(InvalidCall::Arguments(why)) => return Ok(failure(why)),
        };
        let (sender, messages) = mpsc::channel(16);
        let send_progress = move |line: String| drop(sender.try_send(line));
        let result = self.tools.perform(request, self.folder.clone(), &send_progress);
        let result = tokio::select! {
            result = result => result,
            () = context.ct.cancelled() => Err("the call was cancelled; the turn continues".into()),
            never = report_progress(&context, messages) => match never {},
        };
        Ok(match result {
            Ok(value) => CallToolResult::structured(value).into(),
            Err(Failure::UnknownSession(session)) => return Err(unknown_session(&session)),
            Err(Failure::Refused(why)) => failure(why),
        })
    }

    // Prompts are not supported, and the library's default would be an empty list.
    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let summaries =
            self.tools.sessions.recent(None, 100).await.map_err(|error| internal(&error))?;
        let resource = |id: String, title: String| {
            Resource::new(decode::transcript_uri(&id), id)
                .with_title(if title.is_empty() { "Session".to_owned() } else { title })
                .with_mime_type("text/markdown")
        };
        let all = summaries
            .into_iter()
            .map(|summary| resource(summary.id.to_string(), summary.title))
            .collect();
        let mut list = ListResourcesResult::with_all_items(all);
        (list.ttl_ms, list.cache_scope) = (Some(0), Some(CacheScope::Private));
        Ok(list)
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let uri = decode::transcript_uri("{session}");
        let template = ResourceTemplate::new(uri, "transcript").with_mime_type("text/markdown");
        let mut list = ListResourceTemplatesResult::with_all_items(vec![template]);
        (list.ttl_ms, list.cache_scope) = (Some(TOOLS_TTL_MS), Some(CacheScope::Private));
        Ok(list)
    }

    async fn read_resource(
        &self,
        read: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let unknown = || {
            // The stateless version of the protocol uses another code.
            let modern =
                context.protocol_version().is_some_and(|version| !version.has_initialize());
            let code =
                if modern { ErrorCode::INVALID_PARAMS } else { ErrorCode::RESOURCE_NOT_FOUND };
            let data = Some(json!({ "uri": read.uri }));
            ErrorData::new(code, format!("resource not found: {}", read.uri), data)
        };
        let session = decode::transcript(&read.uri).ok_or_else(unknown)?;
        let text = match self.tools.transcript(&session).await {
            Ok(text) => text,
            Err(Error::NotFound(_)) => return Err(unknown()),
            Err(error) => return Err(internal(&error)),
        };
        let contents = ResourceContents::text(text, &read.uri).with_mime_type("text/markdown");
        let mut result = ReadResourceResult::new(vec![contents]);
        (result.ttl_ms, result.cache_scope) = (Some(0), Some(CacheScope::Private));
        Ok(result.into())
    }
}

fn failure(why: String) -> CallToolResponse {
    CallToolResult::error(vec![ContentBlock::text(why)]).into()
}

fn unknown_session(session: &str) -> ErrorData {
    ErrorData::invalid_params(format!("session not found: {session}"), None)
}

fn internal(error: &Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

/// Converts a tool for the library. A client whose folder is known need not name one.
fn tool(spec: ToolSpec, has_folder: bool) -> Tool {
    let ToolSpec { name, description, properties, required, reads } = spec;
    let required: Vec<&&str> =
        required.iter().filter(|field| !(has_folder && **field == "workspace")).collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let schema: Map<String, Value> = match schema {
        Value::Object(schema) => schema,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    };
    let hints = ToolAnnotations::new().read_only(reads).destructive(!reads).open_world(!reads);
    Tool::new(name, description, schema).with_annotations(hints)
}

/// Reports progress to a client that requested it.
async fn report_progress(
    context: &RequestContext<RoleServer>,
    mut messages: mpsc::Receiver<String>,
) -> std::convert::Infallible {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    ticks.reset();
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            _ = ticks.tick() => Some("working".to_owned()),
        };
        let Some(message) = message else { return std::future::pending().await };
        let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        #[expect(clippy::cast_precision_loss, reason = "progress only has to increase")]
        let progress =
            ProgressNotificationParam::new(token.clone(), count as f64).with_message(message);
        if let Err(error) = context.peer.notify_progress(progress).await {
            tracing::debug!(%error, "sending progress failed");
        }
    }
}
