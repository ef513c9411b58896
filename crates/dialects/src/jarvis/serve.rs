//! Moves bytes: requests to `decode`, commands to the core, events through `encode` to the client.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use quintet_kernel::memory::{LineRange, MemoryEntry, MemoryMatch, MemoryQuery};
use quintet_kernel::port::Memory;
use quintet_kernel::toolset::{ClientTool, Toolset};
use quintet_kernel::{ClientRef, Cursor, SessionId, Time};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use super::chat::{self, Envelope};
use super::claim_priority::{ClaimPriorities, ClaimPriority};
use super::decode::{
    BODY_BYTES_LIMIT, Chat, REFUSALS, ROUTES, Route, Step, decode, key, openapi, position,
};
use super::encode::Link;
use super::reply::Reply;
use super::stream::Stream;
use super::tools::FRONT_END;
use super::{sessions, wire};
use crate::dialect::Services;
use crate::held_calls::HeldCalls;
use crate::transport::access::Denied;
use crate::transport::body::{BodyError, read_body};
use crate::transport::routes;

/// The settings of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    /// The folder of all sessions and of memory; created when it is first needed.
    pub workspace: PathBuf,
    /// Time without use after which a session is continued only on request; `None` for no limit.
    pub expiry: Option<Duration>,
    /// The tools of new sessions.
    pub toolset: Toolset,
}

#[derive(Clone)]
pub(super) struct AppState {
    pub(super) services: Arc<Services>,
    pub(super) settings: Arc<Settings>,
    started: Time,
    /// The number of streams so far.
    connections: Arc<AtomicU64>,
    /// Tools that desktops registered during a turn, for the next message.
    pub(super) pending_tools: Arc<Mutex<HashMap<SessionId, Vec<ClientTool>>>>,
    /// The streams that may claim calls first.
    pub(super) claim_priorities: Arc<ClaimPriorities>,
    /// Tasks that run after a client has disconnected.
    pub(super) tasks: TaskTracker,
}

/// The router of the protocol.
pub(super) fn router(services: Arc<Services>, settings: Settings) -> Router {
    let started = services.clock.now();
    let (settings, connections) = (Arc::new(settings), Arc::default());
    let (pending_tools, claim_priorities, tasks) =
        (Arc::default(), Arc::default(), TaskTracker::new());
    let app = AppState {
        services,
        settings,
        started,
        connections,
        pending_tools,
        claim_priorities,
        tasks,
    };
    routes::router(ROUTES, REFUSALS, serve).with_state(app)
}

async fn serve(app: AppState, route: Result<Route, Reply>, request: Request) -> Response {
    let response = match route {
        Ok(route) => app.respond(route, request).await,
        Err(refused) => Err(refused),
    };
    response.unwrap_or_else(|reply| error_response(&reply))
}

impl AppState {
    async fn respond(&self, route: Route, request: Request) -> Result<Response, Reply> {
        let (head, body) = request.into_parts();
        let query = head.uri.query().unwrap_or_default();
        if head.method == "POST" {
            check_json(&head.headers)?;
        }
        let body = read_body(body, BODY_BYTES_LIMIT).await.map_err(body_error)?;
        match decode(route, query, &body)? {
            Step::Health => Ok(self.health().await),
            Step::OpenApi => Ok(ok(&openapi())),
            Step::Open(request) => {
                let session = sessions::open(self, request).await?;
                Ok(ok(&json!({ "general_session_id": session.as_str() })))
            }
            Step::Chat(chat) => self.chat(&chat, &head.headers, query).await,
            Step::Stream(session) => {
                let requested = position(text(&head.headers, "last-event-id"), query)?;
                self.stream(&session, requested).await
            }
            Step::Submit(session, command) => {
                self.services.sessions.submit(&session, command).await?;
                Ok(ok(&json!({ "accepted": true })))
            }
            Step::Remember(session, entry) => self.write_memory(&session, entry).await,
            Step::Search(query) => self.search(query).await,
            Step::Get(path, lines) => self.get(&path, lines).await,
        }
    }

    async fn health(&self) -> Response {
        let uptime = self.services.clock.now().since(self.started).as_millis();
        let healthy = self.services.storage_health.check().await.is_ok();
        let mut response = ok(&wire::Health {
            healthy,
            version: env!("CARGO_PKG_VERSION"),
            uptime_ms: u64::try_from(uptime).unwrap_or(u64::MAX),
        });
        if !healthy {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        response
    }

    async fn chat(&self, chat: &Chat, headers: &HeaderMap, query: &str) -> Result<Response, Reply> {
        let envelope = Envelope {
            key: key(text(headers, "idempotency-key"))?,
            position: position(text(headers, "last-event-id"), query)?,
        };
        if chat.stream {
            chat::stream(self, chat, &envelope).await
        } else {
            Ok(ok(&chat::final_answer(self, chat, &envelope).await?))
        }
    }

    /// Follows a session, from now on or from a position. Reading starts with the turn at that position.
    async fn stream(&self, id: &SessionId, requested: Option<Cursor>) -> Result<Response, Reply> {
        let sessions = &self.services.sessions;
        let state = sessions.view(id).await?;
        if let Some(requested) = requested.filter(|requested| requested.seq > state.head) {
            return Err(Reply::gone(&requested.to_string()));
        }
        let seen = requested.unwrap_or(Cursor::after(state.head));
        let turn = state.turns.iter().rev().find(|turn| turn.begins <= seen.seq);
        let read = turn.map_or(seen.seq, |turn| turn.begins - 1);
        drop(state);
        let follow = sessions.follow(id, Cursor::after(read)).await?;
        let shown = requested.map_or(0, |requested| requested.seq);
        let link = Link::of_session(seen, read, shown);
        self.stream_of(id, link, None).response(follow).await
    }

    /// A stream of a session to a desktop, which runs the calls that are sent to it.
    pub(super) fn stream_of(
        &self,
        session: &SessionId,
        link: Link,
        priority: Option<ClaimPriority>,
    ) -> Stream {
        let connection = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let client = ClientRef::connected(FRONT_END, connection.to_string());
        let held = HeldCalls::new(Arc::clone(&self.services.sessions), client);
        Stream::new(link, session.clone(), held, priority, self)
    }

    /// The workspace of all sessions, which is created if needed.
    pub(super) async fn workspace(&self) -> Result<&Path, Reply> {
        let workspace = &self.settings.workspace;
        match tokio::fs::create_dir_all(workspace).await {
            Ok(()) => Ok(workspace),
            Err(error) => {
                let why = format!("the workspace {} cannot be used: {error}", workspace.display());
                Err(Reply::new(500, "STORAGE_ERROR", why))
            }
        }
    }

    fn memory(&self) -> Result<&dyn Memory, Reply> {
        let off = || Reply::new(503, "MEMORY_OFF", "memory is off: memory.enabled is false");
        self.services.memory.as_deref().ok_or_else(off)
    }

    async fn write_memory(
        &self,
        session: &SessionId,
        entry: MemoryEntry,
    ) -> Result<Response, Reply> {
        self.services.sessions.summary(session).await?;
        let written = self.memory()?.write(self.workspace().await?, entry).await?;
        Ok(ok(&json!({ "path": written.path })))
    }

    async fn search(&self, query: MemoryQuery) -> Result<Response, Reply> {
        let found = self.memory()?.search(self.workspace().await?, query).await?;
        let results: Vec<Value> = found.passages.iter().map(passage).collect();
        let mut response = ok(&json!({ "results": results }));
        // The schema of the body has no field for how the passages were ranked.
        let headers = response.headers_mut();
        headers.insert("x-search", HeaderValue::from_static(found.method.name()));
        let reason = found.method.reason().map(HeaderValue::from_str);
        headers.extend(reason.and_then(Result::ok).map(|reason| (SEARCH_REASON, reason)));
        Ok(response)
    }

    async fn get(&self, path: &str, lines: LineRange) -> Result<Response, Reply> {
        let passage = self.memory()?.get(self.workspace().await?, path, lines).await?;
        Ok(ok(&json!({
            "path": passage.path,
            "content": passage.text,
            "line_start": passage.line_start,
            "line_end": passage.line_end,
            "total_lines": passage.lines,
        })))
    }
}

fn passage(found: &MemoryMatch) -> Value {
    let MemoryMatch { path, excerpt, line_start, line_end, score } = found;
    json!(wire::MemoryMatch {
        path,
        excerpt,
        line_start: *line_start,
        line_end: *line_end,
        score: *score,
    })
}

/// The header with the reason why a search did not rank by meaning.
const SEARCH_REASON: HeaderName = HeaderName::from_static("x-search-reason");

/// The content types of JSON bodies. The second one is the default of `curl -d`.
const JSON_CONTENT_TYPES: [&str; 2] = ["application/json", "application/x-www-form-urlencoded"];

/// Checks that a body is declared as JSON. Fails otherwise.
fn check_json(headers: &HeaderMap) -> Result<(), Reply> {
    let kind = text(headers, header::CONTENT_TYPE.as_str()).unwrap_or("application/json");
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if JSON_CONTENT_TYPES.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        Ok(())
    } else {
        let why = format!("the body must be application/json, not {kind}");
        Err(Reply::new(415, "UNSUPPORTED_MEDIA_TYPE", why))
    }
}

fn body_error(error: BodyError) -> Reply {
    match error {
        BodyError::Broken => Reply::invalid("the request body is incomplete"),
        BodyError::TooLarge => Reply::new(413, "PAYLOAD_TOO_LARGE", "request body too large"),
    }
}

/// The response to a request that the access policy refuses.
pub(super) fn refuse(denied: &Denied) -> Response {
    let code = match denied {
        Denied::DuplicateHeader(_) => "INVALID_REQUEST",
        Denied::Token => "UNAUTHORIZED",
        Denied::Host(_) => "HOST_NOT_ALLOWED",
        Denied::Origin(_) => "ORIGIN_NOT_ALLOWED",
        Denied::Peer(_) => "FORBIDDEN",
    };
    error_response(&Reply::new(denied.status(), code, denied.to_string()))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn error_response(reply: &Reply) -> Response {
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_bytes(reply.body());
    *response.status_mut() = status;
    response
}

fn ok(body: &impl Serialize) -> Response {
    json_bytes(serde_json::to_vec(body).expect("our own types serialize"))
}

fn json_bytes(body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
