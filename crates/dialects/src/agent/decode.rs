//! Frames of clients as requests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::SessionId;
use quintet_kernel::message::MediaKind;
use serde_json::Value;

use super::event_id::EventRef;
use super::legacy;
use super::request::{CreateSession, File, Message, Read, Request, Response};
use super::wire::Framing;
use crate::jsonrpc::{self, Call, Error, Fields, Id, Incoming};

/// How many sessions a list holds by default and at most.
const SESSION_LIST_LIMITS: (u64, u64) = (100, 1000);
/// How many events a page holds by default and at most.
const EVENT_PAGE_LIMITS: (u64, u64) = (100, 10_000);

/// One request and how to answer it.
#[derive(Debug)]
pub(super) struct RequestFrame {
    pub(super) framing: Framing,
    /// None if no answer is wanted.
    pub(super) id: Option<Id>,
    pub(super) request: Result<Request, Error>,
}

/// What a frame holds.
#[derive(Debug)]
pub(super) enum Decoded {
    One(RequestFrame),
    /// Several requests, to be answered together.
    Batch(Vec<RequestFrame>),
}

/// Reads a frame. `framing` is the one that the client used before.
pub(super) fn decode(framing: Framing, text: &str) -> Decoded {
    if let Some(request) = legacy_frame(text) {
        return Decoded::One(request);
    }
    match jsonrpc::read(text) {
        Ok(Incoming::One(one)) => Decoded::One(json_rpc(framing, one)),
        Ok(Incoming::Batch(calls)) => {
            Decoded::Batch(calls.into_iter().map(|call| json_rpc(Framing::JsonRpc, call)).collect())
        }
        Err(error) => {
            Decoded::One(RequestFrame { framing, id: Some(Id::Null), request: Err(error) })
        }
    }
}

fn json_rpc(framing: Framing, received: jsonrpc::Received) -> RequestFrame {
    match received {
        Ok(Call { id, method, params }) => {
            RequestFrame { framing: Framing::JsonRpc, id, request: request(&method, &params) }
        }
        Err(fault) => RequestFrame { framing, id: Some(fault.id), request: Err(fault.error) },
    }
}

/// A request as the original server's clients write it: without `jsonrpc`.
fn legacy_frame(text: &str) -> Option<RequestFrame> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let frame: Value = serde_json::from_str(text).ok()?;
    let members = frame.as_object().filter(|members| !members.contains_key("jsonrpc"))?;
    let method = members.get("method")?.as_str()?;
    let framing = Framing::Legacy;
    let Some(id) = members.get("id").and_then(Value::as_str) else {
        let request = Err(Error::invalid("id must be a string"));
        return Some(RequestFrame { framing, id: None, request });
    };
    let request = request(method, members.get("params").unwrap_or(&Value::Null));
    let request = request.map_err(|error| legacy::unknown(method, error));
    Some(RequestFrame { framing, id: Some(Id::Text(id.into())), request })
}

/// The request that a method stands for. Methods of the original server that mean the same stand beside
/// those of the specification.
fn request(method: &str, params: &Value) -> Result<Request, Error> {
    let fields = Fields::of(params)?;
    let session = || session(&fields);
    Ok(match method {
        "session.create" => Request::Create(create_session(&fields)?),
        "session.list" => Request::List {
            workspace: fields.text("workspaceId")?.or(fields.text("workingDirectory")?).map(own),
            limit: limit(&fields, SESSION_LIST_LIMITS)?,
        },
        "session.get" | "session.getState" => Request::Get(session()?),
        "session.resume" => Request::Resume(session()?),
        "events.subscribe" => Request::Subscribe(session()?),
        "session.getHead" => Request::Head(session()?),
        "session.fork" => Request::Fork {
            session: session()?,
            at: event_of(&fields, params, &["eventId", "fromEventId"])?,
            name: fields.text("name")?.map(own),
            model: fields.text("model")?.map(own),
        },
        "session.delete" => Request::Delete(session()?),
        "tree.getBranches" | "session.branches" => Request::Branches(session()?),
        "agent.message" | "agent.prompt" => Request::Message(message(&fields, params)?),
        "agent.abort" => Request::Abort(session()?),
        "agent.respond" | "tool.result" => respond(&fields, params)?,
        "agent.getState" => Request::AgentStatus(session()?),
        "model.list" => Request::Models,
        "model.switch" => {
            Request::SwitchModel { session: session()?, model: need(&fields, "model")?.into() }
        }
        "context.get" => Request::Context(session()?),
        "context.shouldCompact" | "context.canAcceptTurn" => {
            let expected = fields.unsigned("estimatedResponseTokens")?.unwrap_or(0);
            Request::ContextRoom { session: session()?, expected }
        }
        "context.compact" | "context.confirmCompaction" => Request::Compact {
            session: session()?,
            summary: fields.text("editedSummary")?.filter(|text| !text.trim().is_empty()).map(own),
        },
        "context.clear" => Request::Clear(session()?),
        "events.list" => Request::Events(read(&fields, params, &["after", "afterEventId"])?),
        "events.sync" => {
            let Some(last) = fields.unsigned("lastSequence")? else {
                return Err(fields.invalid("lastSequence", "a whole number"));
            };
            let page = fields.unsigned("limit")?.map(|_| limit(&fields, EVENT_PAGE_LIMITS));
            let read = read(&fields, params, &[])?;
            Request::Sync(Read { from: Some(last.into()), limit: page.transpose()?, ..read })
        }
        "events.unsubscribe" => Request::Unsubscribe(session()?),
        "system.ping" => Request::Ping,
        "system.getInfo" => Request::Info,
        _ => return legacy::request(method, params),
    })
}

fn create_session(fields: &Fields<'_>) -> Result<CreateSession, Error> {
    let workspace = need(fields, "workingDirectory")?;
    if !workspace.starts_with('/') || workspace.contains('\0') {
        return Err(fields.invalid("workingDirectory", "an absolute path"));
    }
    Ok(CreateSession {
        workspace: workspace.into(),
        model: fields.text("model")?.filter(|model| !model.is_empty()).map(own),
        system_prompt: fields.text("systemPrompt")?.map(own),
        title: fields.text("title")?.map(own),
    })
}

fn message(fields: &Fields<'_>, params: &Value) -> Result<Message, Error> {
    let mut message = Message {
        session: session(fields)?,
        text: String::new(),
        files: Vec::new(),
        model: fields.text("model")?.map(own),
        effort: fields.text("reasoningLevel")?.map(own),
        queue: fields.flag("queue")?.unwrap_or(false),
        key: fields.text("idempotencyKey")?.map(own),
    };
    match params.get("content").or(params.get("prompt")) {
        Some(Value::String(text)) => message.text = text.clone(),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                take_block(&mut message, block)?;
            }
        }
        _ => return Err(fields.invalid("content", "a string or a list of blocks")),
    }
    for name in ["attachments", "images"] {
        for file in fields.objects(name)?.unwrap_or_default() {
            let n = message.files.len() + 1;
            message.files.push(attachment(&file, n)?);
        }
    }
    Ok(message)
}

fn take_block(message: &mut Message, block: &Value) -> Result<(), Error> {
    let expected = "a list of text and image blocks";
    let fields = Fields::of(block).map_err(|_| Error::field("content", expected))?;
    match fields.text("type")? {
        Some("text") => message.text.push_str(fields.required_text("text")?),
        Some("image" | "document" | "file") => {
            let n = message.files.len() + 1;
            message.files.push(attachment(&fields.object("source")?, n)?);
        }
        _ => return Err(Error::field("content", expected)),
    }
    Ok(())
}

fn attachment(file: &Fields<'_>, n: usize) -> Result<File, Error> {
    let data = file.required_text("data")?;
    // Browsers hand out `data:` addresses.
    let (stated, data) = match data.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((head, data)) => (head.strip_suffix(";base64"), data),
        None => (None, data),
    };
    let content = STANDARD.decode(data).map_err(|_| file.invalid("data", "base64"))?;
    let mime = file.text("mimeType")?.or(file.text("media_type")?).or(stated);
    let mime = mime.unwrap_or("application/octet-stream");
    let name = file.text("fileName")?.or(file.text("name")?).map_or_else(
        || format!("attachment-{n}.{}", mime.rsplit('/').next().unwrap_or("bin")),
        own,
    );
    let kind = match mime.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        _ => MediaKind::File,
    };
    Ok(File { name, mime: mime.into(), kind, content })
}

fn respond(fields: &Fields<'_>, params: &Value) -> Result<Request, Error> {
    let session = session(fields)?;
    let given = params.get("response").or(params.get("result")).unwrap_or(&Value::Null);
    let call = |from: &Fields<'_>| -> Result<Option<String>, Error> {
        let call = from.text("toolId")?.or(from.text("toolCallId")?).or(from.text("callId")?);
        Ok(call.map(own))
    };
    let inner = match given {
        Value::Object(_) => Fields::of(given)?,
        _ => Fields::of(&Value::Null)?,
    };
    let response = match given {
        Value::Null => return Err(fields.invalid("response", "an answer")),
        Value::Bool(allow) => Response::Decision { allow: *allow, reason: None },
        Value::Object(_) => answer(&inner, given)?,
        Value::String(text) => Response::Text { text: text.clone(), failed: false },
        Value::Number(_) | Value::Array(_) => {
            Response::Text { text: given.to_string(), failed: false }
        }
    };
    let call = call(&inner)?.or(call(fields)?);
    Ok(Request::Respond { session, call, response })
}

fn answer(inner: &Fields<'_>, given: &Value) -> Result<Response, Error> {
    let reason = inner.text("reason")?.map(own);
    let word = match (inner.flag("approved")?, inner.text("decision")?) {
        (Some(allow), _) => Some(allow),
        (None, Some("allow" | "approve" | "approved" | "yes")) => Some(true),
        (None, Some("deny" | "denied" | "reject" | "no")) => Some(false),
        (None, Some(_)) => return Err(inner.invalid("decision", "allow or deny")),
        (None, None) => None,
    };
    if let Some(allow) = word {
        return Ok(Response::Decision { allow, reason });
    }
    let failed = inner.flag("isError")?.unwrap_or(false);
    let said = ["answer", "content", "text", "result"].iter().find_map(|name| given.get(name));
    let text = match said {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => given.to_string(),
    };
    Ok(Response::Text { text, failed })
}

pub(super) fn read(fields: &Fields<'_>, params: &Value, from: &[&str]) -> Result<Read, Error> {
    Ok(Read {
        session: session(fields)?,
        from: event_of(fields, params, from)?,
        limit: Some(limit(fields, EVENT_PAGE_LIMITS)?),
        types: fields.text_list("types")?.unwrap_or_default().into_iter().map(own).collect(),
        since: None,
        original: false,
    })
}

/// The event that a request names by one of these members.
fn event_of(
    fields: &Fields<'_>,
    params: &Value,
    names: &[&str],
) -> Result<Option<EventRef>, Error> {
    let given = names.iter().find_map(|name| Some((name, params.get(name)?)));
    match given {
        None | Some((_, Value::Null)) => Ok(None),
        Some((name, value)) => match EventRef::read(value, &session(fields)?) {
            Some(event) => Ok(Some(event)),
            None => Err(fields.invalid(name, "an event or its sequence")),
        },
    }
}

fn limit(fields: &Fields<'_>, (default, maximum): (u64, u64)) -> Result<usize, Error> {
    let limit = fields.unsigned("limit")?.unwrap_or(default).min(maximum);
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

pub(super) fn session(fields: &Fields<'_>) -> Result<SessionId, Error> {
    let id = need(fields, "sessionId")?;
    // A text that cannot be an id is no session's.
    SessionId::parse(id)
        .ok_or_else(|| Error::new(super::wire::SESSION_NOT_FOUND, "Session does not exist"))
}

pub(super) fn need<'a>(fields: &Fields<'a>, name: &str) -> Result<&'a str, Error> {
    match fields.text(name)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(Error::new(jsonrpc::INVALID_PARAMS, format!("{name} is required"))),
    }
}

fn own(text: &str) -> String {
    text.to_owned()
}
