//! The requests of the client and the answers of the daemon, as JSON-RPC messages.

use serde_json::{Map, Value, json};

use crate::Settings;

/// The protocol version that the client supports.
const VERSION: &str = "1.0.0";
/// Maximum number of sessions that are requested for a list.
const LIST_LIMIT: u64 = 200;

/// The size of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) cols: u16,
    pub(crate) rows: u16,
}

/// A request to the daemon.
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
    /// Continue a query that was paused after a crash.
    Resume {
        query: String,
    },
    Approve {
        execution: String,
        decision: Decision,
    },
    /// Answer a question of a running call.
    Answer {
        execution: String,
        content: Value,
    },
    /// Report a new size of the terminal; this is a notification.
    Context(Size),
    List,
    /// Open a session, or reopen it with the number of answer bytes that were already received.
    Load {
        session: String,
        received_bytes: Option<u64>,
    },
    Delete {
        session: String,
    },
    /// The prompts of servers.
    Prompts,
}

/// The answer to a call that needs approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    No,
    Once,
    /// Also for the same call in the future.
    Same,
    /// Also for all similar calls.
    Similar,
}

/// An error response of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RpcError {
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
            Self::Approve { .. } | Self::Answer { .. } => "tool.approve",
            Self::Context(_) => "context.update",
            Self::List => "session.list",
            Self::Load { .. } => "session.load",
            Self::Delete { .. } => "session.delete",
            Self::Prompts => "prompts.list",
        }
    }

    /// True if the daemon answers this request; false for notifications.
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
            Self::Answer { execution, content } => {
                json!({ "execution_id": execution, "approved": true, "content": content })
            }
            Self::Context(size) => {
                let mut params = context(settings);
                params["terminal_size"] = json!({ "cols": size.cols, "rows": size.rows });
                params
            }
            Self::List => json!({ "limit": LIST_LIMIT }),
            Self::Load { session, received_bytes } => {
                json!({ "session_id": session, "offset": received_bytes.unwrap_or(0) })
            }
            Self::Delete { session } => json!({ "session_id": session }),
            Self::Prompts => json!({ "context": context(settings) }),
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
pub(crate) fn answer(message: &Value) -> Option<(u64, Result<Value, RpcError>)> {
    let id = message.get("id")?.as_u64()?;
    let Some(error) = message.get("error").filter(|error| !error.is_null()) else {
        return Some((id, Ok(message.get("result").cloned().unwrap_or_default())));
    };
    let message = error["message"].as_str().unwrap_or("the daemon refused the request");
    Some((
        id,
        Err(RpcError { code: error["code"].as_i64().unwrap_or_default(), message: message.into() }),
    ))
}
