//! One connection to a server: the handshake, its list of tools, calls.
//!
//! Servers of both protocol eras are spoken to: first the `initialize` handshake, which almost all know,
//! and where a server refuses it, the stateless protocol that came later.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use quintet_kernel::port::{ToolContext, ToolProgress, ToolServer, ToolTransport};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
    ClientConfig, ClientRequest, Implementation, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, ServerResult, SubscriptionFilter,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, PeerRequestOptions,
    RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::process::{Process, ServerLauncher};
use super::tool_list::TOOLS_LIMIT;

/// How long one page of a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// How many pages of a list are read.
const PAGES_LIMIT: usize = 100;
/// The longest that a call may take, however much progress it reports.
const CALL_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);
/// How long a connection over HTTP may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REDIRECTS_LIMIT: usize = 5;

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// A handshake and a session.
    Initialize,
    /// Self-contained requests.
    Discover,
}

/// A connection that was not made.
#[derive(Debug)]
pub(super) struct Unconnected {
    pub(super) reason: String,
    /// The server answered, but does not know this era.
    pub(super) wrong_era: bool,
}

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    peer: Peer<RoleClient>,
    events: Arc<Events>,
}

/// What has to be kept for as long as a connection is open.
pub(super) struct Opened {
    pub(super) connection: Arc<Connection>,
    pub(super) service: RunningService<RoleClient, Handler>,
    pub(super) process: Option<Process>,
}

/// What a call came to.
#[derive(Debug)]
pub(super) enum Called {
    /// The server's answer.
    Answered(Box<ServerResult>),
    /// The server refused the call, or the call was not sent.
    Refused(String),
    /// The connection broke: the call may have run.
    Unknown(String),
    TimedOut(Duration),
    Cancelled,
}

/// What a server says by itself.
#[derive(Debug, Default)]
struct Events {
    tools_changed: Notify,
    running: Mutex<HashMap<ProgressToken, ProgressSink>>,
}

/// Where the progress of a call goes.
#[derive(Clone)]
struct ProgressSink(Arc<dyn ToolProgress>);

impl std::fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgressSink")
    }
}

/// Receives what a server sends by itself. Questions of servers are declined: nobody could answer them.
#[derive(Clone, Debug)]
pub(super) struct Handler(Arc<Events>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("quintet", env!("CARGO_PKG_VERSION"));
        let config = ClientConfig::new(ClientCapabilities::default(), us);
        config.with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.tools_changed.notify_one();
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let sink = self.0.lock().get(&progress.progress_token).cloned();
        if let Some(ProgressSink(sink)) = sink {
            let of = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
            let text = progress.message.map(|text| format!(" {text}")).unwrap_or_default();
            sink.report(&format!("[{}{of}]{text}\n", progress.progress));
        }
    }
}

impl Events {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ProgressToken, ProgressSink>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Connects to a server. The caller bounds the time.
pub(super) async fn connect(
    server: &ToolServer,
    folder: &Path,
    launcher: &ServerLauncher,
    era: Era,
) -> Result<Opened, Unconnected> {
    let handler = Handler(Arc::default());
    let events = Arc::clone(&handler.0);
    let mode = match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
        }
    };
    let (service, process) = match &server.transport {
        ToolTransport::Stdio { command, env } => {
            let started = launcher.start(command, env, folder);
            let (process, stdout, stdin) = started.map_err(plainly)?;
            match serve_client_with_lifecycle(handler, (stdout, stdin), mode).await {
                Ok(service) => (service, Some(process)),
                Err(error) => return Err(not_started(&error, process).await),
            }
        }
        ToolTransport::Http { url, headers } => {
            let transport = http(url, headers).map_err(plainly)?;
            let served = serve_client_with_lifecycle(handler, transport, mode).await;
            (served.map_err(|error| refused(&error))?, None)
        }
    };
    let connection = Arc::new(Connection { peer: service.peer().clone(), events });
    Ok(Opened { connection, service, process })
}

fn plainly(reason: String) -> Unconnected {
    Unconnected { reason, wrong_era: false }
}

async fn not_started(error: &ClientInitializeError, process: Process) -> Unconnected {
    let Unconnected { reason, wrong_era } = refused(error);
    let (code, words) = process.ended().await;
    let reason = match (error, code) {
        (ClientInitializeError::ConnectionClosed(_), Some(code)) => {
            format!("ended with exit code {code} before it answered")
        }
        _ => reason,
    };
    let reason = words.map_or(reason.clone(), |words| format!("{reason}; it wrote: {words}"));
    Unconnected { reason, wrong_era }
}

fn refused(error: &ClientInitializeError) -> Unconnected {
    let asks = error.is_authorization_required() || error.auth_challenge().is_some();
    if asks {
        let reason = "the server asks for authorization (401): set its token with `headers`, as \
                      in Authorization = \"Bearer …\"";
        return plainly(reason.to_owned());
    }
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            let reason = format!("the server refused the handshake: {}", error.message);
            Unconnected { reason, wrong_era: true }
        }
        ClientInitializeError::ConnectionClosed(_) => {
            plainly("the server closed the connection before it answered".to_owned())
        }
        ClientInitializeError::TransportError { error, .. } => {
            let reason = innermost(&*error.error);
            // A server of the other era answers with an HTTP error.
            let wrong_era = !reason.contains("onnect");
            Unconnected { reason, wrong_era }
        }
        other => Unconnected { reason: other.to_string(), wrong_era: true },
    }
}

/// What is behind an error.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

fn http(
    url: &str,
    headers: &std::collections::BTreeMap<String, String>,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    static TLS: Once = Once::new();
    // An error says that somebody else in this process chose a provider first, which is as good.
    TLS.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let header = HeaderName::try_from(name.as_str());
        let header = header.map_err(|_| format!("{name:?} is no name of a header"))?;
        // The value is a secret and is not repeated.
        let value = HeaderValue::try_from(value.as_str());
        let mut value =
            value.map_err(|_| format!("the header {name} has a value with control characters"))?;
        value.set_sensitive(true);
        custom.insert(header, value);
    }
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::custom(same_origin))
        .build();
    let client = client.map_err(|error| error.to_string())?;
    let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(custom);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Headers with secrets go to the server that they are for and to no other.
fn same_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let origin = |url: &reqwest::Url| url.origin();
    let same =
        attempt.previous().first().is_some_and(|first| origin(first) == origin(attempt.url()));
    if same && attempt.previous().len() <= REDIRECTS_LIMIT {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

impl Connection {
    /// Resolves when the server says that its tools are others now.
    pub(super) async fn tools_changed(&self) {
        self.events.tools_changed.notified().await;
    }

    /// Has a server of the later era say when its tools are others; those of the earlier era do by
    /// themselves. A server that cannot is not asked again.
    pub(super) async fn subscribe(&self, era: Era) -> Infallible {
        if era == Era::Discover {
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            if let Ok(mut changes) = self.peer.listen(filter).await {
                while let Ok(Some(_)) = changes.next().await {
                    self.events.tools_changed.notify_one();
                }
            }
        }
        std::future::pending().await
    }

    pub(super) fn is_closed(&self) -> bool {
        self.peer.is_transport_closed()
    }

    /// What the server calls itself.
    pub(super) fn title(&self) -> Option<String> {
        let info = serde_json::to_value(&*self.peer.peer_info()?).ok()?;
        let text = |field: &str| info["serverInfo"][field].as_str();
        let name = text("title").or_else(|| text("name"))?;
        Some(format!("{name} {}", text("version").unwrap_or_default()).trim_end().to_owned())
    }

    /// Every tool that the server lists, as it lists them.
    pub(super) async fn list_tools(&self) -> Result<Vec<Value>, String> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_LIMIT {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let request = ListToolsRequest::with_param(params);
            let options = PeerRequestOptions::with_timeout(LIST_TIMEOUT);
            let request = ClientRequest::ListToolsRequest(request);
            let sent = self.peer.send_request_with_option(request, options).await;
            let answer = match sent {
                Ok(handle) => handle.await_response().await,
                Err(error) => Err(error),
            };
            let answer = answer.map_err(|error| format!("tools/list: {}", explain(&error)))?;
            // Whatever is in the list: each tool is looked at by itself.
            let mut page = serde_json::to_value(answer).map_err(|error| error.to_string())?;
            let Value::Array(more) = page["tools"].take() else {
                return Err("tools/list: the answer has no list of tools".to_owned());
            };
            tools.extend(more);
            cursor = page["nextCursor"].as_str().map(String::from);
            if cursor.is_none() || tools.len() > TOOLS_LIMIT {
                return Ok(tools);
            }
        }
        Ok(tools)
    }

    /// Calls a tool. A cancelled call is called off at the server, too.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        timeout: Duration,
        context: &ToolContext,
    ) -> Called {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::with_timeout(timeout)
            .reset_timeout_on_progress()
            .with_max_total_timeout(CALL_LIMIT.max(timeout));
        let handle = match self.peer.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => return Called::Refused(explain(&error)),
        };
        let (id, token) = (handle.id.clone(), handle.progress_token.clone());
        self.events.lock().insert(token.clone(), ProgressSink(Arc::clone(&context.progress)));
        let called = tokio::select! {
            answer = handle.await_response() => match answer {
                Ok(answer) => Called::Answered(Box::new(answer)),
                Err(ServiceError::McpError(error)) => {
                    Called::Refused(format!("{} (code {})", error.message, error.code.0))
                }
                Err(ServiceError::Timeout { .. }) => Called::TimedOut(timeout),
                Err(error) => Called::Unknown(explain(&error)),
            },
            () = context.cancel.cancelled() => {
                let reason = Some("the user cancelled the turn".to_owned());
                let cancelled = CancelledNotificationParam::new(Some(id), reason);
                if let Err(error) = self.peer.notify_cancelled(cancelled).await {
                    tracing::debug!(%error, "a cancelled call was not called off at its server");
                }
                Called::Cancelled
            }
        };
        self.events.lock().remove(&token);
        called
    }
}

fn explain(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("{} (code {})", error.message, error.code.0),
        ServiceError::TransportSend(error) => innermost(&*error.error),
        ServiceError::TransportClosed => "the connection to the server is closed".to_owned(),
        ServiceError::Timeout { timeout } => format!("no answer within {}s", timeout.as_secs()),
        other => other.to_string(),
    }
}
