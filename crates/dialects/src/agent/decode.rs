//! Decodes frames of clients.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::SessionId;
use quintet_kernel::message::MediaKind;
use serde_json::Value;

use super::event_id::EventRef;
use super::legacy;
use super::request::{CreateSession, EventQuery, File, Message, Request, Response};
use super::wire::Framing;
use crate::jsonrpc::{self, Call, Error, Fields, Id, Incoming};

/// Sessions of a list: the default and the maximum.
const SESSION_LIST_LIMITS: (u64, u64) = (100, 1000);
/// Events of a page: the default and the maximum.
const EVENT_PAGE_LIMITS: (u64, u64) = (100, 10_000);

/// A request with its framing and id.
#[derive(Debug)]
pub(super) struct RequestFrame {
    pub(super) framing: Framing,
    /// `None` for a notification, which has no response.
    pub(super) id: Option<Id>,
    pub(super) request: Result<Request, Error>,
}

/// A decoded frame.
#[derive(Debug)]
pub(super) enum Decoded {
    One(RequestFrame),
    /// Several requests, with one response for all of them.
    Batch(Vec<RequestFrame>),
}

/// Decodes a frame. `framing` is the one that the client used before.
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

/// A request in the framing of the original server: without `jsonrpc`.
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

/// Decodes a method. Methods of the original server are listed with those of the specification that mean
/// the same.
fn request(method: &str, params: &Value) -> Result<Request, Error> {
    let fields = Fields::of(params)?;
    let session = || session(&fields);
    Ok(match method {
        "session.create" => Request::Create(create_session(&fields)?),
        "session.list" => Request::List {
            workspace: fields.text("workspaceId")?.or(fields.text("workingDirectory")?).map(owned),
            limit: limit(&fields, SESSION_LIST_LIMITS)?,
        },
        "session.get" | "session.getState" => Request::Get(session()?),
        "session.resume" => Request::Resume(session()?),
        "events.subscribe" => Request::Subscribe(session()?),
        "session.getHead" => Request::Head(session()?),
        "session.fork" => Request::Fork {
            session: session()?,
            at: event_ref(&fields, params, &["eventId", "fromEventId"])?,
            name: fields.text("name")?.map(owned),
            model: fields.text("model")?.map(owned),
        },
        "session.delete" => Request::Delete(session()?),
        "tree.getBranches" | "session.branches" => Request::Branches(session()?),
        "agent.message" | "agent.prompt" => Request::Message(message(&fields, params)?),
        "agent.abort" => Request::Abort(session()?),
        "agent.respond" | "tool.result" => respond(&fields, params)?,
        "agent.getState" => Request::AgentStatus(session()?),
        "model.list" => Request::Models,
        "model.switch" => {
            Request::SwitchModel { session: session()?, model: required(&fields, "model")?.into() }
        }
        "context.get" => Request::Context(session()?),
        "context.shouldCompact" | "context.canAcceptTurn" => {
            let expected = fields.unsigned("estimatedResponseTokens")?.unwrap_or(0);
            Request::ContextSpace { session: session()?, expected }
        }
        "context.compact" | "context.confirmCompaction" => Request::Compact {
            session: session()?,
            summary: fields
                .text("editedSummary")?
                .filter(|text| !text.trim().is_empty())
                .map(owned),
        },
        "context.clear" => Request::Clear(session()?),
        "events.list" => Request::Events(event_query(&fields, params, &["after", "afterEventId"])?),
        "events.sync" => {
            let Some(last) = fields.unsigned("lastSequence")? else {
                return Err(fields.invalid("lastSequence", "a whole number"));
            };
            let page = fields.unsigned("limit")?.map(|_| limit(&fields, EVENT_PAGE_LIMITS));
            let query = event_query(&fields, params, &[])?;
            Request::Sync(EventQuery { from: Some(last.into()), limit: page.transpose()?, ..query })
        }
        "events.unsubscribe" => Request::Unsubscribe(session()?),
        "system.ping" => Request::Ping,
        "system.getInfo" => Request::Info,
        _ => return legacy::request(method, params),
    })
}

fn create_session(fields: &Fields<'_>) -> Result<CreateSession, Error> {
    let workspace = required(fields, "workingDirectory")?;
    if !workspace.starts_with('/') || workspace.contains('\0') {
        return Err(fields.invalid("workingDirectory", "an absolute path"));
    }
    Ok(CreateSession {
        workspace: workspace.into(),
        model: fields.text("model")?.filter(|model| !model.is_empty()).map(owned),
        system_prompt: fields.text("systemPrompt")?.map(owned),
        title: fields.text("title")?.map(owned),
    })
}

fn message(fields: &Fields<'_>, params: &Value) -> Result<Message, Error> {
    let mut message = Message {
        session: session(fields)?,
        text: String::new(),
        files: Vec::new(),
        model: fields.text("model")?.map(owned),
        effort: fields.text("reasoningLevel")?.map(owned),
        queue: fields.flag("queue")?.unwrap_or(false),
        key: fields.text("idempotencyKey")?.map(owned),
    };
    match params.get("content").or(params.get("prompt")) {
        Some(Value::String(text)) => message.text = text.clone(),
        Some(Value::Array(blocks)) => {
            for block in blocks {
                add_block(&mut message, block)?;
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

fn add_block(message: &mut Message, block: &Value) -> Result<(), Error> {
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
    // Browsers produce `data:` URLs.
    let (declared, data) = match data.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
        Some((head, data)) => (head.strip_suffix(";base64"), data),
        None => (None, data),
    };
    let content = STANDARD.decode(data).map_err(|_| file.invalid("data", "base64"))?;
    let mime = file.text("mimeType")?.or(file.text("media_type")?).or(declared);
    let mime = mime.unwrap_or("application/octet-stream");
    let name = file.text("fileName")?.or(file.text("name")?).map_or_else(
        || format!("attachment-{n}.{}", mime.rsplit('/').next().unwrap_or("bin")),
        owned,
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
        Ok(call.map(owned))
    };
    let inner = match given {
        Value::Object(_) => Fields::of(given)?,
        _ => Fields::of(&Value::Null)?,
    };
    let response = match given {
        Value::Null => return Err(fields.invalid("response", "an answer")),
        Value::Bool(allow) => Response::Decision { allow: *allow, reason: None },
        Value::Object(_) => answer_object(&inner, given)?,
        Value::String(text) => Response::Text { text: text.clone(), failed: false },
        Value::Number(_) | Value::Array(_) => {
            Response::Text { text: given.to_string(), failed: false }
        }
    };
    let call = call(&inner)?.or(call(fields)?);
    Ok(Request::Respond { session, call, response })
}

fn answer_object(inner: &Fields<'_>, given: &Value) -> Result<Response, Error> {
    let reason = inner.text("reason")?.map(owned);
    let decision = match (inner.flag("approved")?, inner.text("decision")?) {
        (Some(allow), _) => Some(allow),
        (None, Some("allow" | "approve" | "approved" | "yes")) => Some(true),
        (None, Some("deny" | "denied" | "reject" | "no")) => Some(false),
        (None, Some(_)) => return Err(inner.invalid("decision", "allow or deny")),
        (None, None) => None,
    };
    if let Some(allow) = decision {
        return Ok(Response::Decision { allow, reason });
    }
    let failed = inner.flag("isError")?.unwrap_or(false);
    let value = ["answer", "content", "text", "result"].iter().find_map(|name| given.get(name));
    let text = match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => given.to_string(),
    };
    Ok(Response::Text { text, failed })
}

pub(super) fn event_query(
    fields: &Fields<'_>,
    params: &Value,
    from: &[&str],
) -> Result<EventQuery, Error> {
    Ok(EventQuery {
        session: session(fields)?,
        from: event_ref(fields, params, from)?,
        limit: Some(limit(fields, EVENT_PAGE_LIMITS)?),
        types: fields.text_list("types")?.unwrap_or_default().into_iter().map(owned).collect(),
        since: None,
        original: false,
    })
}

/// The event that a request refers to in one of these members.
fn event_ref(
    fields: &Fields<'_>,
    params: &Value,
    names: &[&str],
) -> Result<Option<EventRef>, Error> {
    let given = names.iter().find_map(|name| Some((name, params.get(name)?)));
    match given {
        None | Some((_, Value::Null)) => Ok(None),
        Some((name, value)) => match EventRef::parse(value, &session(fields)?) {
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
    let id = required(fields, "sessionId")?;
    // A session with an invalid id cannot exist.
    SessionId::parse(id)
        .ok_or_else(|| Error::new(super::wire::SESSION_NOT_FOUND, "Session does not exist"))
}

pub(super) fn required<'a>(fields: &Fields<'a>, name: &str) -> Result<&'a str, Error> {
    match fields.text(name)? {
        Some(text) if !text.is_empty() => Ok(text),
        _ => Err(Error::new(jsonrpc::INVALID_PARAMS, format!("{name} is required"))),
    }
}

fn owned(text: &str) -> String {
    text.to_owned()
}
