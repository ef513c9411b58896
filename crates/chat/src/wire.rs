//! What goes over the wire: what this client approvals, and what it understands of what it hears.

use serde_json::{Map, Value, json};

use crate::Settings;

/// The version of the protocol that is spoken here.
const VERSION: &str = "1.0.0";
/// How many sessions a list holds.
const LISTED: u64 = 200;

/// How large the terminal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) cols: u16,
    pub(crate) rows: u16,
}

/// What is asked of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Initialize(Size),
    Query {
        text: String,
        model: Option<String>,
    },
    Cancel {
        query: String,
    },
    /// Let a query go on that was paused after a crash.
    Resume {
        query: String,
    },
    Approve {
        execution: String,
        decision: Decision,
    },
    /// The terminal is another one now; nothing is answered to that.
    Context(Size),
    List,
    /// Open a session, or come back to it with so many bytes of the answer already here.
    Load {
        session: String,
        had: Option<u64>,
    },
    Delete {
        session: String,
    },
}

/// The answer to a call that needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    No,
    Once,
    /// And for the same call whenever it comes again.
    Same,
    /// And for all calls like it.
    Similar,
}

/// What the daemon said no with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) code: i64,
    pub(crate) message: String,
}

impl Request {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Initialize(_) => "initialize",
            Self::Query { .. } => "agent.query",
            Self::Cancel { .. } => "agent.cancel",
            Self::Resume { .. } => "agent.resume",
            Self::Approve { .. } => "tool.approve",
            Self::Context(_) => "context.update",
            Self::List => "session.list",
            Self::Load { .. } => "session.load",
            Self::Delete { .. } => "session.delete",
        }
    }

    /// Whether the daemon answers.
    pub(crate) fn is_answered(&self) -> bool {
        !matches!(self, Self::Context(_))
    }

    fn params(&self, settings: &Settings) -> Value {
        match self {
            Self::Initialize(size) => initialize(*size),
            Self::Query { text, model } => {
                let mut params = json!({
                    "message": text,
                    "context": context(settings),
                    "options": { "stream": true },
                });
                if let Some(model) = model {
                    params["options"]["model"] = model.as_str().into();
                }
                params
            }
            Self::Cancel { query } | Self::Resume { query } => json!({ "query_id": query }),
            Self::Approve { execution, decision } => json!({
                "execution_id": execution,
                "approved": *decision != Decision::No,
                "options": {
                    "remember_choice": matches!(decision, Decision::Same | Decision::Similar),
                    "apply_to_similar": *decision == Decision::Similar,
                },
            }),
            Self::Context(size) => {
                let mut params = context(settings);
                params["terminal_size"] = json!({ "cols": size.cols, "rows": size.rows });
                params
            }
            Self::List => json!({ "limit": LISTED }),
            Self::Load { session, had } => {
                json!({ "session_id": session, "offset": had.unwrap_or(0) })
            }
            Self::Delete { session } => json!({ "session_id": session }),
        }
    }

    /// The request as a line.
    pub(crate) fn line(&self, id: u64, settings: &Settings) -> Vec<u8> {
        let mut message = Map::new();
        message.insert("jsonrpc".into(), "2.0".into());
        if self.is_answered() {
            message.insert("id".into(), id.into());
        }
        message.insert("method".into(), self.method().into());
        message.insert("params".into(), self.params(settings));
        let mut line = Value::Object(message).to_string().into_bytes();
        line.push(b'\n');
        line
    }
}

fn initialize(size: Size) -> Value {
    json!({
        "protocol_version": VERSION,
        "client_info": { "name": "quintet-chat", "version": env!("CARGO_PKG_VERSION") },
        "terminal_size": { "cols": size.cols, "rows": size.rows },
        "capabilities": [
            "streaming",
            "blocks",
            "syntax_highlighting",
            "tool_approval",
            "session_persistence",
        ],
    })
}

fn context(settings: &Settings) -> Value {
    let mut context = json!({ "cwd": settings.cwd.to_string_lossy() });
    if let Some(shell) = &settings.shell {
        context["shell"] = shell.as_str().into();
    }
    context
}

/// An answer to a request, if the message is one.
pub(crate) fn answer(message: &Value) -> Option<(u64, Result<Value, Fault>)> {
    let id = message.get("id")?.as_u64()?;
    let Some(error) = message.get("error").filter(|error| !error.is_null()) else {
        return Some((id, Ok(message.get("result").cloned().unwrap_or_default())));
    };
    let said = error["message"].as_str().unwrap_or("the daemon said no");
    Some((
        id,
        Err(Fault { code: error["code"].as_i64().unwrap_or_default(), message: said.into() }),
    ))
}
