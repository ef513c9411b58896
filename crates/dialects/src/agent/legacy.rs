//! Methods and types of the original server that the specification does not have.

use quintet_kernel::Time;
use serde_json::Value;

use super::decode::{event_query, required, session};
use super::event_id;
use super::request::{EventQuery, Request};
use super::wire::NOT_AVAILABLE;
use crate::jsonrpc::{Error, Fields, METHOD_NOT_FOUND};

/// The most ancestors of an event in a response.
const ANCESTORS_LIMIT: usize = 10_000;

/// Methods of the original whose result is always the same here.
const STATIC_REPLIES: [(&str, &str); 13] = [
    ("worktree.getStatus", r#"{"hasWorktree":false}"#),
    ("worktree.list", r#"{"worktrees":[]}"#),
    ("skill.list", r#"{"skills":[],"totalCount":0,"autoInjectCount":0}"#),
    ("skill.refresh", r#"{"success":true,"skillCount":0}"#),
    ("todo.list", r#"{"todos":[],"summary":"no tasks"}"#),
    ("todo.getBacklog", r#"{"tasks":[],"totalCount":0}"#),
    ("todo.getBacklogCount", r#"{"count":0}"#),
    ("browser.getStatus", r#"{"hasBrowser":false,"isStreaming":false}"#),
    ("plan.getState", r#"{"isActive":false,"blockedTools":[]}"#),
    ("memory.getHandoffs", r#"{"handoffs":[]}"#),
    ("voiceNotes.list", r#"{"notes":[],"totalCount":0,"hasMore":false}"#),
    ("transcribe.listModels", r#"{"models":[],"defaultModelId":null}"#),
    ("canvas.get", r#"{"found":false}"#),
];

/// Methods of the original that are not available here.
const UNAVAILABLE: [&str; 29] = [
    "browser.startStream",
    "browser.stopStream",
    "device.register",
    "device.unregister",
    "events.append",
    "file.read",
    "git.clone",
    "logs.export",
    "memory.addEntry",
    "message.delete",
    "plan.enter",
    "plan.exit",
    "search.content",
    "search.events",
    "session.rewind",
    "settings.get",
    "settings.update",
    "skill.get",
    "skill.remove",
    "system.shutdown",
    "todo.restore",
    "transcribe.audio",
    "tree.compareBranches",
    "tree.getSubtree",
    "voiceNotes.delete",
    "voiceNotes.save",
    "worktree.commit",
    "worktree.merge",
    "memory.search",
];

/// Prefixes of methods that are not available here.
const UNAVAILABLE_PREFIXES: [&str; 3] = ["communication.", "sandbox.", "tasks."];

/// True if the original has a method of this name that is not available here.
fn is_unavailable(method: &str) -> bool {
    UNAVAILABLE.contains(&method)
        || UNAVAILABLE_PREFIXES.iter().any(|family| method.starts_with(family))
}

/// Decodes a method that only the original server has.
pub(super) fn request(method: &str, params: &Value) -> Result<Request, Error> {
    let fields = Fields::of(params)?;
    let text = |name: &str| Ok(fields.text(name)?.map(str::to_owned));
    Ok(match method {
        "context.getSnapshot" => Request::Snapshot { session: session(&fields)?, whole: false },
        "context.getDetailedSnapshot" => {
            Request::Snapshot { session: session(&fields)?, whole: true }
        }
        "context.previewCompaction" => Request::PreviewCompaction(session(&fields)?),
        "events.getHistory" => {
            Request::EventsBackwards(original(event_query(&fields, params, &["beforeEventId"])?))
        }
        "events.getSince" => {
            let query =
                original(event_query(&fields, params, &["afterEventId", "after", "sinceEventId"])?);
            Request::Events(EventQuery { since: after_timestamp(&fields)?, ..query })
        }
        "tree.getAncestors" => Request::Ancestors(ancestors(&fields)?),
        "tree.getVisualization" => Request::Tree {
            session: session(&fields)?,
            messages: fields.flag("messagesOnly")?.unwrap_or(false),
        },
        "filesystem.listDir" => Request::ListFolder {
            path: text("path")?.filter(|path| !path.is_empty()),
            hidden: fields.flag("showHidden")?.unwrap_or(false),
        },
        "filesystem.getHome" => Request::Home,
        "filesystem.createDir" => Request::MakeFolder {
            path: required(&fields, "path")?.to_owned(),
            parents: fields.flag("recursive")?.unwrap_or(false),
        },
        _ => match STATIC_REPLIES.iter().find(|(name, _)| *name == method) {
            Some((_, reply)) => {
                Request::StaticReply(serde_json::from_str(reply).unwrap_or_default())
            }
            None => return Err(Error::no_method(method)),
        },
    })
}

fn original(query: EventQuery) -> EventQuery {
    EventQuery { original: true, ..query }
}

fn after_timestamp(fields: &Fields<'_>) -> Result<Option<Time>, Error> {
    let Some(text) = fields.text("afterTimestamp")? else { return Ok(None) };
    let wrong = || fields.invalid("afterTimestamp", "a time such as 2025-01-01T00:00:00Z");
    Time::parse(text).map(Some).ok_or_else(wrong)
}

/// Decodes a request for the ancestors of an event. The session is part of the event's id.
fn ancestors(fields: &Fields<'_>) -> Result<EventQuery, Error> {
    let name = required(fields, "eventId")?;
    let (session, seq) =
        event_id::parse(name).ok_or_else(|| fields.invalid("eventId", "an event"))?;
    let limit = fields.unsigned("limit")?.and_then(|limit| usize::try_from(limit).ok());
    Ok(EventQuery {
        session,
        from: Some(seq.saturating_add(1).into()),
        limit: Some(limit.unwrap_or(ANCESTORS_LIMIT).min(ANCESTORS_LIMIT)),
        types: Vec::new(),
        since: None,
        original: true,
    })
}

/// The error for an unknown method, in the original's wording.
pub(super) fn unknown(method: &str, error: Error) -> Error {
    match error.code {
        METHOD_NOT_FOUND if is_unavailable(method) => {
            Error::new(NOT_AVAILABLE, format!("{method} is not available"))
        }
        METHOD_NOT_FOUND => Error::new(METHOD_NOT_FOUND, format!("Unknown method: {method}")),
        _ => error,
    }
}

/// Renames the types of stored events that the original server names differently.
pub(super) fn stored(mut event: Value) -> Value {
    let kind = match event["type"].as_str() {
        Some("subagent.spawn") => "subagent.spawned",
        Some("subagent.progress") => "subagent.status_update",
        Some("subagent.complete") if event["payload"]["success"] == true => "subagent.completed",
        Some("subagent.complete") => "subagent.failed",
        Some("context.compaction") => "compact.boundary",
        _ => return event,
    };
    event["type"] = kind.into();
    event
}
