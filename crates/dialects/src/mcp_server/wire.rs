//! The tools: their names, arguments and results.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

/// The description of a tool.
#[derive(Debug)]
pub(super) struct ToolSpec {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// The JSON schemas of the arguments.
    pub(super) properties: Value,
    pub(super) required: &'static [&'static str],
    /// True if the tool changes nothing.
    pub(super) reads: bool,
}

/// All tools, in the order of the list.
pub(super) fn tools() -> Vec<ToolSpec> {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let session = || text("The session's id, from an earlier result");
    let wait = |default: u64| {
        let about = format!(
            "How long to wait for the end of the turn, in seconds; default {default}. A turn that \
             takes longer goes on: ask for its status."
        );
        json!({ "type": "number", "minimum": 0, "maximum": WAIT_LIMIT_SECONDS, "description": about })
    };
    vec![
        ToolSpec {
            name: "run",
            description: "Give a task to an agent that works in a folder of this machine with a \
                          shell, file tools and more. Starts a session.",
            properties: json!({
                "prompt": text("The task"),
                "workspace": text("The folder to work in, as an absolute path"),
                "wait_seconds": wait(WAIT_SECONDS),
            }),
            required: &["prompt", "workspace"],
            reads: false,
        },
        ToolSpec {
            name: "continue",
            description: "Give the agent of a session another message, once its turn is over.",
            properties: json!({
                "session": session(),
                "prompt": text("The message"),
                "wait_seconds": wait(WAIT_SECONDS),
            }),
            required: &["session", "prompt"],
            reads: false,
        },
        ToolSpec {
            name: "status",
            description: "What became of a session's turn: its state, the text after a cursor, and \
                          the questions that wait for an answer.",
            properties: json!({
                "session": session(),
                "cursor": text("The cursor of an earlier result; without it all text of the turn"),
                "wait_seconds": wait(0),
            }),
            required: &["session"],
            reads: true,
        },
        ToolSpec {
            name: "answer",
            description: "Answer a question of a session in the name of the user: whether a tool \
                          may run, or what a running tool wants to know. Show the user the question \
                          first.",
            properties: json!({
                "session": session(),
                "question": text("The question's id"),
                "option": { "type": "string", "enum": ["approve", "deny"] },
                "content": {
                    "type": "object",
                    "description": "The values that a question with a schema asks for, if approved",
                },
                "reason": text("Why, for the agent"),
                "wait_seconds": wait(0),
            }),
            required: &["session", "question", "option"],
            reads: false,
        },
        ToolSpec {
            name: "cancel",
            description: "Cancel the turn that is under way in a session.",
            properties: json!({ "session": session() }),
            required: &["session"],
            reads: false,
        },
        ToolSpec {
            name: "sessions",
            description: "List the most recently used sessions.",
            properties: json!({}),
            required: &[],
            reads: true,
        },
    ]
}

/// Time that `run` and `continue` wait by default. Many clients give up after a minute.
pub(super) const WAIT_SECONDS: u64 = 30;
/// The longest time that a call may wait.
pub(super) const WAIT_LIMIT_SECONDS: u64 = 600;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunArguments {
    pub(super) prompt: String,
    pub(super) workspace: Option<String>,
    pub(super) wait_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContinueArguments {
    pub(super) session: String,
    pub(super) prompt: String,
    pub(super) wait_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusArguments {
    pub(super) session: String,
    #[serde(default, deserialize_with = "cursor")]
    pub(super) cursor: Option<String>,
    pub(super) wait_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerArguments {
    pub(super) session: String,
    pub(super) question: String,
    pub(super) option: Choice,
    pub(super) content: Option<Value>,
    pub(super) reason: Option<String>,
    pub(super) wait_seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Choice {
    Approve,
    Deny,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelArguments {
    pub(super) session: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionsArguments {}

/// Deserializes a cursor, which may also be a number.
fn cursor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::Null => None,
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    })
}

/// The result of most tools.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) session: String,
    pub(super) turn: Option<String>,
    pub(super) state: &'static str,
    pub(super) cursor: String,
    pub(super) text: String,
    pub(super) questions: Vec<OpenQuestion>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// A question that waits for the user.
#[derive(Debug, Serialize)]
pub(super) struct OpenQuestion {
    pub(super) id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool: Option<String>,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) arguments: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) risk: Option<&'static str>,
    pub(super) reasons: Vec<String>,
    pub(super) preview: String,
    pub(super) options: [&'static str; 2],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) expires: Option<String>,
}

/// A session in a list.
#[derive(Debug, Serialize)]
pub(super) struct SessionEntry {
    pub(super) session: String,
    pub(super) title: String,
    pub(super) state: &'static str,
    pub(super) workspace: String,
    pub(super) updated: String,
}
