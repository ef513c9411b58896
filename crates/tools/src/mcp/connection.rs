//! One connection to a server: the handshake, its list of tools, calls.
//!
//! Both generations of the protocol are supported: the `initialize` handshake, which almost all servers know,
//! is tried first, and the later, stateless protocol if a server refuses it. Requests over HTTP carry the
//! token of the user's login, if there is one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::SessionId;
use quintet_kernel::port::{ToolContext, ToolServer, ToolTransport};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientCapabilities,
    ClientConfig, ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, GetPromptRequest, GetPromptRequestParams,
    Implementation, ListPromptsRequest, ListToolsRequest, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, RequestId, ServerResult, SubscriptionFilter,
    UrlElicitationCapability,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, NotificationContext, PeerRequestOptions,
    RequestContext, RunningService, serve_client_with_lifecycle,
};
use rmcp::transport::{AuthClient, StreamableHttpClientTransport};
use rmcp::{ClientHandler, ErrorData, Peer, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use super::http::{Refusal, http};
use super::launcher::{ServerCommand, ServerFolder, ServerLauncher};
use super::login::{LoginKey, LoginStore, NoLogin, authorized};
use super::process::{Ended, Process};
use super::prompt::PROMPTS_LIMIT;
use super::running_calls::{CallTimer, RunningCall, RunningCalls};
use super::tool_list::TOOLS_LIMIT;

/// How long one page of a list may take.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);
/// How many pages of a list are read.
const PAGES_LIMIT: usize = 100;
/// The longest that a call may take, however much progress it reports.
const CALL_LIMIT: Duration = Duration::from_secs(4 * 60 * 60);
/// How often a server may ask for more input during one call.
const INPUT_ROUNDS_LIMIT: usize = 10;

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
    pub(super) remedy: Remedy,
}

/// What helps where a connection was not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Another attempt.
    Retry,
    /// The server answered, but does not know this era.
    OtherEra,
    /// A login of the person.
    Login,
}

/// What connections are made with.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) launcher: ServerLauncher,
    pub(super) logins: Arc<dyn LoginStore>,
}

impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connector").field("launcher", &self.launcher).finish_non_exhaustive()
    }
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
    /// The server wants a login, or one with more permissions; the call was not run.
    LoginNeeded(String),
    /// The connection broke: the call may have run.
    Unknown(String),
    TimedOut(Duration),
    Cancelled,
}

/// What a server says by itself.
#[derive(Debug, Default)]
struct Events {
    tools_changed: Notify,
    prompts_changed: Notify,
    running: RunningCalls,
}

/// Receives what a server sends by itself, its questions to the user included.
#[derive(Clone, Debug)]
pub(super) struct Handler {
    server: String,
    events: Arc<Events>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("quintet", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        capabilities.elicitation = Some(elicitation);
        let config = ClientConfig::new(capabilities, us);
        config.with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.events.tools_changed.notify_one();
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(match self.events.running.asking() {
            Some(call) => call.ask(&self.server, request, context.ct).await,
            None => {
                let server = &self.server;
                tracing::warn!(server, "an MCP server asks something of no or several sessions");
                ElicitResult::new(ElicitationAction::Decline)
            }
        })
    }

    async fn on_prompt_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.events.prompts_changed.notify_one();
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let call = self.events.running.find(&progress.progress_token);
        if let Some(RunningCall { context, timer, .. }) = call {
            timer.progressed();
            let of = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
            let text = progress.message.map(|text| format!(" {text}")).unwrap_or_default();
            context.progress.report(&format!("[{}{of}]{text}\n", progress.progress));
        }
    }
}

/// Connects to a server. The caller bounds the time.
pub(super) async fn connect(
    server: &ToolServer,
    folder: &ServerFolder,
    connector: &Connector,
    era: Era,
) -> Result<Opened, Unconnected> {
    let handler = Handler { server: server.name.clone(), events: Arc::default() };
    let events = Arc::clone(&handler.events);
    let mode = match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Discover => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::LATEST] }
        }
    };
    let (service, process) = match &server.transport {
        ToolTransport::Stdio { command, env, sandbox } => {
            let name = &server.name;
            let command = ServerCommand { name, command, env, sandbox, folder };
            let started = connector.launcher.start(&command).await;
            let (process, stdout, stdin) = started.map_err(plainly)?;
            match serve_client_with_lifecycle(handler, (stdout, stdin), mode).await {
                Ok(service) => (service, Some(process)),
                Err(error) => return Err(not_started(&error, process).await),
            }
        }
        ToolTransport::Http { url, headers } => {
            let (client, config) = http(url, headers).map_err(plainly)?;
            let served = match login(server, &client, connector).await? {
                Some(client) => {
                    let transport = StreamableHttpClientTransport::with_client(client, config);
                    serve_client_with_lifecycle(handler, transport, mode).await
                }
                None => {
                    let transport = StreamableHttpClientTransport::with_client(client, config);
                    serve_client_with_lifecycle(handler, transport, mode).await
                }
            };
            (served.map_err(|error| refused(&error, server))?, None)
        }
    };
    let connection = Arc::new(Connection { peer: service.peer().clone(), events });
    if connection.offers_prompts() {
        connection.events.prompts_changed.notify_one();
    }
    Ok(Opened { connection, service, process })
}

/// The client with the login of the person, if there is one.
async fn login(
    server: &ToolServer,
    client: &reqwest::Client,
    connector: &Connector,
) -> Result<Option<AuthClient<reqwest::Client>>, Unconnected> {
    let Some(key) = LoginKey::of(server) else { return Ok(None) };
    let authorized = authorized(client, &key, Arc::clone(&connector.logins)).await;
    authorized.map_err(|why| match why {
        NoLogin::Needed => login_needed(server),
        NoLogin::Unusable(why) => plainly(format!("the login cannot be used: {why}")),
    })
}

fn plainly(reason: String) -> Unconnected {
    Unconnected { reason, remedy: Remedy::Retry }
}

async fn not_started(error: &ClientInitializeError, process: Process) -> Unconnected {
    let Unconnected { reason, remedy } = explained(error);
    let Ended { code, details } = process.ended().await;
    let reason = match (error, code) {
        (ClientInitializeError::ConnectionClosed(_), Some(code)) => {
            format!("ended with exit code {code} before it answered")
        }
        _ => reason,
    };
    Unconnected { reason: reason + &details, remedy }
}

fn refused(error: &ClientInitializeError, server: &ToolServer) -> Unconnected {
    if let ClientInitializeError::TransportError { error, .. } = error
        && let Some(refusal) = Refusal::of(&*error.error)
    {
        return Unconnected { reason: refusal.remedy(server), remedy: Remedy::Login };
    }
    explained(error)
}

fn login_needed(server: &ToolServer) -> Unconnected {
    Unconnected { reason: Refusal::Login.remedy(server), remedy: Remedy::Login }
}

fn explained(error: &ClientInitializeError) -> Unconnected {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            let reason = format!("the server refused the handshake: {}", error.message);
            Unconnected { reason, remedy: Remedy::OtherEra }
        }
        ClientInitializeError::ConnectionClosed(_) => {
            plainly("the server closed the connection before it answered".to_owned())
        }
        ClientInitializeError::TransportError { error, .. } => {
            let reason = innermost(&*error.error);
            // A server of the other era answers with an HTTP error.
            let remedy = if reason.contains("onnect") { Remedy::Retry } else { Remedy::OtherEra };
            Unconnected { reason, remedy }
        }
        other => Unconnected { reason: other.to_string(), remedy: Remedy::OtherEra },
    }
}

/// What is behind an error.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

impl Connection {
    /// Resolves when the server says that its tools are others now.
    pub(super) async fn tools_changed(&self) {
        self.events.tools_changed.notified().await;
    }

    /// Resolves when the server's prompts are to be listed (again).
    pub(super) async fn prompts_changed(&self) {
        self.events.prompts_changed.notified().await;
    }

    fn offers_prompts(&self) -> bool {
        let info = self.peer.peer_info().and_then(|info| serde_json::to_value(&*info).ok());
        info.is_some_and(|info| info["capabilities"]["prompts"].is_object())
    }

    /// Has a server of the later era say when its lists are others; those of the earlier era do by
    /// themselves. A server that cannot is not asked again.
    pub(super) async fn subscribe(&self, era: Era) -> Infallible {
        if era == Era::Discover {
            let mut filter = SubscriptionFilter::builder().tools_list_changed();
            if self.offers_prompts() {
                filter = filter.prompts_list_changed();
            }
            if let Ok(mut changes) = self.peer.listen(filter.build()).await {
                while let Ok(Some(_)) = changes.next().await {
                    self.events.tools_changed.notify_one();
                    if self.offers_prompts() {
                        self.events.prompts_changed.notify_one();
                    }
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
    pub(super) async fn list_tools(&self, server: &ToolServer) -> Result<Vec<Value>, Unconnected> {
        let request =
            |params| ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        self.list(server, "tools", TOOLS_LIMIT, request).await
    }

    /// Every prompt that the server lists, as it lists them.
    pub(super) async fn list_prompts(
        &self,
        server: &ToolServer,
    ) -> Result<Vec<Value>, Unconnected> {
        let request =
            |params| ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(params));
        self.list(server, "prompts", PROMPTS_LIMIT, request).await
    }

    /// Reads a list page by page. Whatever is in it is looked at by itself later.
    async fn list(
        &self,
        server: &ToolServer,
        what: &str,
        limit: usize,
        request: impl Fn(PaginatedRequestParams) -> ClientRequest,
    ) -> Result<Vec<Value>, Unconnected> {
        let (mut listed, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_LIMIT {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let answer = self.request(request(params), LIST_TIMEOUT).await;
            let answer = answer.map_err(|error| match login_refusal(&error, server) {
                Some(refusal) => Unconnected { reason: refusal, remedy: Remedy::Login },
                None => plainly(format!("{what}/list: {}", explain(&error))),
            })?;
            let page = serde_json::to_value(answer);
            let mut page = page.map_err(|error| plainly(error.to_string()))?;
            let Value::Array(more) = page[what].take() else {
                return Err(plainly(format!("{what}/list: the answer has no list of {what}")));
            };
            listed.extend(more);
            cursor = page["nextCursor"].as_str().map(String::from);
            if cursor.is_none() || listed.len() > limit {
                return Ok(listed);
            }
        }
        Ok(listed)
    }

    async fn request(
        &self,
        request: ClientRequest,
        within: Duration,
    ) -> Result<ServerResult, ServiceError> {
        let options = PeerRequestOptions::with_timeout(within);
        self.peer.send_request_with_option(request, options).await?.await_response().await
    }

    /// What a prompt says, as the server has it. Fails with the reason.
    pub(super) async fn prompt(
        &self,
        server: &ToolServer,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Value, String> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let answer = self.request(request, LIST_TIMEOUT).await;
        let answer = answer
            .map_err(|error| login_refusal(&error, server).unwrap_or_else(|| explain(&error)))?;
        if let ServerResult::InputRequiredResult(_) = answer {
            return Err("the server asks for more input, which is not supported".to_owned());
        }
        serde_json::to_value(answer).map_err(|error| error.to_string())
    }

    /// Calls a tool for a session. Questions of the server during the call are passed to the user. If the
    /// call is cancelled, the server is told.
    pub(super) async fn call(
        &self,
        server: &ToolServer,
        tool: &str,
        arguments: Map<String, Value>,
        of: (&SessionId, &ToolContext),
    ) -> Called {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        for _ in 0..INPUT_ROUNDS_LIMIT {
            let (call, called) = self.call_once(server, params.clone(), of).await;
            let answer = match called {
                Called::Answered(answer) => *answer,
                other => return other,
            };
            let wanted = match answer {
                ServerResult::InputRequiredResult(wanted) => wanted,
                other => return Called::Answered(Box::new(other)),
            };
            let requests = wanted.input_requests.unwrap_or_default();
            let responses = tokio::select! {
                responses = call.responses(&server.name, requests) => responses,
                () = of.1.cancel.cancelled() => return Called::Cancelled,
            };
            match responses {
                Ok(responses) => params.input_responses = Some(responses),
                Err(why) => return Called::Refused(why),
            }
            params.request_state = wanted.request_state;
        }
        Called::Refused(format!("the server asked for more input {INPUT_ROUNDS_LIMIT} times"))
    }

    /// Sends one request and waits for its answer; gives the call as it ran, too.
    async fn call_once(
        &self,
        server: &ToolServer,
        params: CallToolRequestParams,
        (session, context): (&SessionId, &ToolContext),
    ) -> (RunningCall, Called) {
        let timer = CallTimer::new(server.timeout, CALL_LIMIT.max(server.timeout));
        let call = RunningCall::new(session.clone(), context.clone(), timer);
        let listed = self.events.running.list(call);
        let called = self.send_call(server, params, &listed.call).await;
        (listed.call.clone(), called)
    }

    async fn send_call(
        &self,
        server: &ToolServer,
        params: CallToolRequestParams,
        call: &RunningCall,
    ) -> Called {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let handle = match self.peer.send_request_with_option(request, options).await {
            Ok(handle) => handle,
            Err(error) => {
                let why = explain(&error);
                let refusal = login_refusal(&error, server);
                return refusal.map_or(Called::Refused(why), Called::LoginNeeded);
            }
        };
        let id = handle.id.clone();
        // Set once: each call is sent once.
        let _ = call.token.set(handle.progress_token.clone());
        tokio::select! {
            answer = handle.await_response() => match answer {
                Ok(answer) => Called::Answered(Box::new(answer)),
                Err(ServiceError::McpError(error)) => {
                    Called::Refused(format!("{} (code {})", error.message, error.code.0))
                }
                Err(error) => {
                    let why = explain(&error);
                    let refusal = login_refusal(&error, server);
                    refusal.map_or(Called::Unknown(why), Called::LoginNeeded)
                }
            },
            () = call.timer.expired() => {
                self.call_off(id, "the call took too long").await;
                Called::TimedOut(server.timeout)
            }
            () = call.context.cancel.cancelled() => {
                self.call_off(id, "the user cancelled the turn").await;
                Called::Cancelled
            }
        }
    }

    /// Tells the server that a call is not waited for any more.
    async fn call_off(&self, call: RequestId, reason: &str) {
        let cancelled = CancelledNotificationParam::new(Some(call), Some(reason.to_owned()));
        if let Err(error) = self.peer.notify_cancelled(cancelled).await {
            tracing::debug!(%error, "a call was not called off at its server");
        }
    }
}

/// A request that was refused for want of a login was not carried out.
fn login_refusal(error: &ServiceError, server: &ToolServer) -> Option<String> {
    let ServiceError::TransportSend(error) = error else { return None };
    Some(Refusal::of(&*error.error)?.remedy(server))
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
