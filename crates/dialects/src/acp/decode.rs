//! Decodes requests of an editor.

mod import;
mod servers;

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::SessionId;
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Effort, ModelRef};
use serde_json::Value;

pub(super) use import::Import;
use servers::ProvidedServers;

use super::settings::{EFFORT, MODE, MODEL, Mode};
use super::wire;
use crate::jsonrpc::{Call, Error, Fields, Id};

/// The method of `quintet import`: creates a session from a transcript of another agent.
pub const IMPORT: &str = "_quintet/import";

/// The capabilities of an editor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Client {
    /// True if the editor's unsaved files can be read.
    pub(super) reads_files: bool,
    /// True if files can be written through the editor's buffers.
    pub(super) writes_files: bool,
    /// True if the editor shows notices.
    pub(super) notices: bool,
    /// True if the editor shows compactions.
    pub(super) compaction: bool,
    /// True if the editor shows the output of commands while they run.
    pub(super) terminal_output: bool,
    /// True if the editor shows forms.
    pub(super) forms: bool,
    /// True if the editor shows links to open.
    pub(super) links: bool,
    /// True if options of a session must not be sent, because this version breaks on them.
    pub(super) no_options: bool,
}

/// The state that decoding needs from earlier requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// The client's capabilities, after `initialize`.
    pub(super) client: Option<Client>,
}

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Request {
    Initialize,
    Authenticate {
        method: String,
    },
    New(OpenParams),
    Load {
        session: SessionId,
        params: OpenParams,
    },
    Resume {
        session: SessionId,
        params: OpenParams,
    },
    List {
        cwd: Option<PathBuf>,
        offset: usize,
    },
    Close(SessionId),
    Delete(String),
    Prompt {
        session: SessionId,
        blocks: Vec<Block>,
    },
    Cancel(SessionId),
    SetMode {
        session: SessionId,
        mode: Mode,
    },
    SetOption {
        session: SessionId,
        choice: Choice,
    },
    Import(Box<Import>),
    /// Cancel the prompt with this request id.
    CancelPrompt(Id),
}

/// The parameters for opening a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OpenParams {
    /// The folder that the session's tools work in.
    pub(super) cwd: PathBuf,
    /// The MCP servers that the client provides.
    pub(super) mcp_servers: ProvidedServers,
}

/// A new value of a session option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Mode(Mode),
    Model(ModelRef),
    Effort(Effort),
}

/// A piece of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Block {
    Text(String),
    /// A reference to content that is not sent.
    Link {
        name: String,
        uri: String,
    },
    /// A file that is sent with the prompt.
    File {
        kind: MediaKind,
        name: String,
        mime: String,
        content: Vec<u8>,
    },
}

/// Decodes a request or notification. Fails if the method is unknown or the parameters are invalid.
pub(super) fn decode(link: &mut Link, call: &Call) -> Result<Request, Error> {
    let fields = Fields::of(&call.params)?;
    if call.method == "initialize" {
        return initialize(link, &fields);
    }
    if link.client.is_none() {
        return Err(Error::invalid("the first request must be initialize"));
    }
    match call.method.as_str() {
        "authenticate" => {
            Ok(Request::Authenticate { method: fields.required_text("methodId")?.to_owned() })
        }
        "session/new" => Ok(Request::New(params(&fields, &call.params)?)),
        "session/load" => {
            Ok(Request::Load { session: session(&fields)?, params: params(&fields, &call.params)? })
        }
        "session/resume" => Ok(Request::Resume {
            session: session(&fields)?,
            params: params(&fields, &call.params)?,
        }),
        "session/list" => list(&fields),
        "session/close" => Ok(Request::Close(session(&fields)?)),
        "session/delete" => Ok(Request::Delete(fields.required_text("sessionId")?.to_owned())),
        "session/prompt" => prompt(&fields, &call.params),
        "session/cancel" => Ok(Request::Cancel(session(&fields)?)),
        "session/set_mode" => {
            let mode = mode("modeId", fields.required_text("modeId")?)?;
            Ok(Request::SetMode { session: session(&fields)?, mode })
        }
        "session/set_config_option" => {
            let choice = choice(fields.required_text("configId")?, &call.params["value"])?;
            Ok(Request::SetOption { session: session(&fields)?, choice })
        }
        IMPORT => {
            import::import(&fields, &call.params).map(|import| Request::Import(Box::new(import)))
        }
        wire::CANCEL_REQUEST => cancel_request(&call.params),
        method => Err(Error::no_method(method)),
    }
}

fn initialize(link: &mut Link, fields: &Fields<'_>) -> Result<Request, Error> {
    if fields.unsigned("protocolVersion")?.is_none() {
        return Err(fields.invalid("protocolVersion", "a whole number"));
    }
    let capabilities = fields.object("clientCapabilities")?;
    let files = capabilities.object("fs")?;
    let session = capabilities.object("session")?;
    let elicitation = capabilities.object("elicitation")?;
    let info = fields.object("clientInfo")?;
    let starts = |name: &str, with: &str| -> Result<bool, Error> {
        Ok(info.text(name)?.is_some_and(|text| text.starts_with(with)))
    };
    link.client = Some(Client {
        reads_files: files.flag("readTextFile")?.unwrap_or_default(),
        writes_files: files.flag("writeTextFile")?.unwrap_or_default(),
        notices: session.has("notices"),
        compaction: session.has("compaction"),
        terminal_output: capabilities.object("_meta")?.flag("terminal_output")?.unwrap_or_default(),
        forms: elicitation.has("form"),
        links: elicitation.has("url"),
        // JetBrains IDEs of 2026.1 fail to start a session if the response has options.
        no_options: starts("name", "JetBrains")? && starts("version", "2026.1")?,
    });
    Ok(Request::Initialize)
}

fn session(fields: &Fields<'_>) -> Result<SessionId, Error> {
    let text = fields.required_text("sessionId")?;
    SessionId::parse(text).ok_or_else(|| wire::not_found(text))
}

fn params(fields: &Fields<'_>, params: &Value) -> Result<OpenParams, Error> {
    let cwd = absolute(fields, fields.required_text("cwd")?)?;
    Ok(OpenParams { cwd, mcp_servers: servers::servers(params) })
}

fn absolute(fields: &Fields<'_>, text: &str) -> Result<PathBuf, Error> {
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        return Err(fields.invalid("cwd", "an absolute path"));
    }
    // Removes a trailing slash, so that a folder has one name.
    Ok(path.components().collect())
}

fn list(fields: &Fields<'_>) -> Result<Request, Error> {
    let cwd = fields.text("cwd")?.map(|text| absolute(fields, text)).transpose()?;
    let cursor = fields.text("cursor")?.map(str::parse).transpose();
    let offset =
        cursor.map_err(|_| fields.invalid("cursor", "the nextCursor of an earlier response"))?;
    Ok(Request::List { cwd, offset: offset.unwrap_or_default() })
}

fn mode(field: &str, id: &str) -> Result<Mode, Error> {
    Mode::parse(id).ok_or_else(|| Error::field(field, "the id of a mode"))
}

fn choice(option: &str, value: &Value) -> Result<Choice, Error> {
    let value = value.as_str().ok_or_else(|| Error::field("value", "a string"))?;
    match option {
        MODE => mode("value", value).map(Choice::Mode),
        MODEL => {
            let model = ModelRef::parse(value).map(Choice::Model);
            model.ok_or_else(|| Error::field("value", "a model of the form provider/model"))
        }
        EFFORT => {
            let effort = Effort::parse(value).map(Choice::Effort);
            effort.ok_or_else(|| Error::field("value", "a thought level of the model"))
        }
        _ => Err(Error::field("configId", "the id of an option")),
    }
}

fn cancel_request(params: &Value) -> Result<Request, Error> {
    let id = match &params["requestId"] {
        Value::Number(number) => Id::Number(number.clone()),
        Value::String(text) => Id::Text(text.clone()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            return Err(Error::field("requestId", "the id of a request"));
        }
    };
    Ok(Request::CancelPrompt(id))
}

fn prompt(fields: &Fields<'_>, params: &Value) -> Result<Request, Error> {
    let session = session(fields)?;
    let blocks = params["prompt"].as_array();
    let blocks = blocks.ok_or_else(|| Error::field("prompt", "a list of content blocks"))?;
    let blocks = blocks.iter().enumerate().map(block).collect::<Result<Vec<_>, _>>()?;
    if blocks.is_empty() {
        return Err(Error::field("prompt", "a list with at least one block"));
    }
    Ok(Request::Prompt { session, blocks })
}

fn block((nth, block): (usize, &Value)) -> Result<Block, Error> {
    let wrong = |what: &str| Error::field(&format!("prompt[{nth}]"), what);
    let text = |value: &Value, name: &str| match value[name].as_str() {
        Some(text) => Ok(text.to_owned()),
        None => Err(wrong(&format!("a block with the string {name:?}"))),
    };
    match block["type"].as_str() {
        Some("text") => Ok(Block::Text(text(block, "text")?)),
        Some("resource_link") => {
            Ok(Block::Link { name: text(block, "name")?, uri: text(block, "uri")? })
        }
        Some(kind @ ("image" | "audio")) => {
            let mime = text(block, "mimeType")?;
            let content = STANDARD.decode(text(block, "data")?);
            let content = content.map_err(|_| wrong("a block whose data is base64"))?;
            let media = if kind == "image" { MediaKind::Image } else { MediaKind::Audio };
            let name = match block["uri"].as_str() {
                Some(uri) => file_name(uri, &mime),
                None => format!("{kind}.{}", extension(&mime)),
            };
            Ok(Block::File { kind: media, name, mime, content })
        }
        Some("resource") => {
            let resource = &block["resource"];
            let uri = text(resource, "uri")?;
            let mime = resource["mimeType"].as_str();
            if let Some(text) = resource["text"].as_str() {
                let mime = mime.filter(|mime| mime.starts_with("text/")).unwrap_or("text/plain");
                let (name, content) = (file_name(&uri, mime), text.as_bytes().to_vec());
                return Ok(Block::File { kind: MediaKind::File, name, mime: mime.into(), content });
            }
            let mime = mime.unwrap_or("application/octet-stream").to_owned();
            let content = STANDARD.decode(text(resource, "blob")?);
            let content = content.map_err(|_| wrong("a resource whose blob is base64"))?;
            let kind = match mime.split('/').next() {
                Some("image") => MediaKind::Image,
                Some("audio") => MediaKind::Audio,
                Some(_) | None => MediaKind::File,
            };
            Ok(Block::File { kind, name: file_name(&uri, &mime), mime, content })
        }
        Some(_) | None => Err(wrong("a block of text, image, audio, resource_link or resource")),
    }
}

/// The file name for a resource: the last part of its URI.
fn file_name(uri: &str, mime: &str) -> String {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let name: String = path.rsplit('/').next().unwrap_or_default().chars().take(100).collect();
    let usable = name.chars().any(|c| c != '.') && !name.chars().any(char::is_control);
    if usable && name.contains('.') {
        name
    } else if usable && !name.is_empty() {
        format!("{name}.{}", extension(mime))
    } else {
        format!("resource.{}", extension(mime))
    }
}

fn extension(mime: &str) -> &str {
    match mime.split_once('/') {
        Some(("text", "plain")) | None => "txt",
        Some((_, "svg+xml")) => "svg",
        Some((_, kind)) if kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) => kind,
        Some(_) => "bin",
    }
}
