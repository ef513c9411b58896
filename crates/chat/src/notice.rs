//! Notifications of the daemon, decoded.
//!
//! The fields of the specification are read first, then the flat copies that older servers send. A
//! missing member is empty and an unknown message is ignored: no message from outside is an error.

use serde_json::Value;

/// A notification.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Notice {
    Tokens { query: String, tokens: Vec<Token> },
    Block { query: String, block: Block },
    Complete { query: String, status: String, figures: Figures },
    Failed { query: String, message: String },
    Approval(Box<ApprovalRequest>),
    Progress { execution: String, status: String, message: String },
    CallEnded(CallEnded),
    Thinking { query: String, phase: String, message: String },
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// True if the text belongs to a block that is sent as a whole later.
    pub(crate) fenced: bool,
    /// The end of the text in the answer, if it was sent.
    pub(crate) end: Option<u64>,
}

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Code,
    Diff,
    Error,
    ToolOutput,
    Interactive,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) kind: Kind,
    pub(crate) language: String,
    pub(crate) content: String,
    /// The file of the block, with its lines.
    pub(crate) place: String,
    /// The call that the block belongs to.
    pub(crate) execution: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) tokens: u64,
    pub(crate) pace: f64,
    pub(crate) model: Option<String>,
    pub(crate) millis: u64,
}

/// A call that waits for approval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ApprovalRequest {
    pub(crate) execution: String,
    pub(crate) query: String,
    pub(crate) tool: String,
    /// The kind of the tool: `shell`, `network`, `file_system` or `other`.
    pub(crate) category: String,
    pub(crate) description: String,
    pub(crate) preview: String,
    /// The format of the preview: `diff`, `command` or `text`.
    pub(crate) preview_type: String,
    pub(crate) risk: String,
    pub(crate) reasons: Vec<String>,
    pub(crate) reversible: Option<bool>,
    /// Seconds until the call is refused.
    pub(crate) timeout: Option<u64>,
    /// For a question of a running call: the answers that need no typing.
    pub(crate) choices: Option<Vec<AnswerChoice>>,
}

/// An answer to a question of a running call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerChoice {
    pub(crate) label: String,
    pub(crate) content: Value,
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallEnded {
    pub(crate) execution: String,
    pub(crate) tool: String,
    pub(crate) status: String,
    pub(crate) files: Vec<String>,
    pub(crate) millis: u64,
    pub(crate) error: Option<String>,
}

impl ApprovalRequest {
    /// The intention of the tool, to follow its name in a sentence.
    pub(crate) fn wants(&self) -> &'static str {
        match (self.category.as_str(), self.preview_type.as_str()) {
            _ if self.choices.is_some() => "asks",
            ("shell", _) | (_, "command") => "wants to run a command",
            ("network", _) => "wants to use the network",
            (_, "diff") => "wants to change files",
            _ => "needs approval",
        }
    }

    /// The sentence with the risk, if it is known.
    pub(crate) fn sentence(&self) -> String {
        let risk = match self.risk.as_str() {
            _ if self.choices.is_some() => String::new(),
            "" => String::new(),
            risk => format!(" ({risk} risk)"),
        };
        format!("{} {}{risk}", self.tool, self.wants())
    }
}

impl Notice {
    /// Reads a message; `None` if it is not a known notification.
    pub(crate) fn read(message: &Value) -> Option<Self> {
        let params = message.get("params")?;
        let query = text(params, "/query_id");
        Some(match message.get("method")?.as_str()? {
            "stream.token" => Self::Tokens { query, tokens: vec![token(params)] },
            "stream.tokens" => {
                let tokens = params["tokens"].as_array()?.iter().map(token).collect();
                Self::Tokens { query, tokens }
            }
            "stream.block" => Self::Block { query, block: block(params) },
            "stream.complete" => {
                Self::Complete { query, status: text(params, "/status"), figures: figures(params) }
            }
            "stream.error" => Self::Failed { query, message: failure(params) },
            "tool.request_approval" => Self::Approval(Box::new(approval_request(params))),
            "tool.progress" => Self::Progress {
                execution: text(params, "/execution_id"),
                status: text(params, "/progress/status"),
                message: text(params, "/progress/message"),
            },
            "tool.complete" | "tool.result" => Self::CallEnded(done(params)),
            "agent.thinking" => {
                let (phase, message) = (text(params, "/phase"), text(params, "/message"));
                Self::Thinking { query, phase, message }
            }
            _ => return None,
        })
    }
}

fn token(params: &Value) -> Token {
    let text = either(params, "/token", "/content");
    let offset = params.pointer("/metadata/offset").and_then(Value::as_u64);
    let fenced = params.pointer("/metadata/type").is_some_and(|kind| kind == "code");
    Token { end: offset.map(|offset| offset.saturating_add(text.len() as u64)), fenced, text }
}

fn block(params: &Value) -> Block {
    let kind = match either(params, "/block/type", "/type").as_str() {
        "code" => Kind::Code,
        "diff" => Kind::Diff,
        "error" => Kind::Error,
        "tool_output" => Kind::ToolOutput,
        "interactive" => Kind::Interactive,
        _ => Kind::Text,
    };
    let (file, lines) =
        (text(params, "/block/metadata/file"), text(params, "/block/metadata/lines"));
    let place = if lines.is_empty() { file } else { format!("{file}:{lines}") };
    let execution = params.pointer("/block/metadata/execution_id").and_then(Value::as_str);
    // The flat copy of a tool's output is plain text, while the block itself may be JSON.
    let content = match kind {
        Kind::ToolOutput | Kind::Error => either(params, "/content", "/block/content"),
        Kind::Text | Kind::Code | Kind::Diff | Kind::Interactive => {
            either(params, "/block/content", "/content")
        }
    };
    Block {
        kind,
        language: either(params, "/block/language", "/language"),
        content,
        place,
        execution: execution.map(str::to_owned),
    }
}

fn figures(params: &Value) -> Figures {
    let meta = &params["metadata"];
    Figures {
        tokens: meta["total_tokens"].as_u64().unwrap_or_default(),
        pace: meta["tokens_per_second"].as_f64().unwrap_or_default(),
        model: meta["model_used"].as_str().map(str::to_owned),
        millis: meta["duration_ms"].as_u64().unwrap_or_default(),
    }
}

fn failure(params: &Value) -> String {
    let (message, details) = (text(params, "/error/message"), text(params, "/error/details"));
    match (message.is_empty(), details.is_empty()) {
        (_, true) => message,
        (true, false) => details,
        (false, false) => format!("{message}: {details}"),
    }
}

fn approval_request(params: &Value) -> ApprovalRequest {
    ApprovalRequest {
        execution: text(params, "/execution_id"),
        query: text(params, "/query_id"),
        tool: either(params, "/tool/name", "/tool_name"),
        category: text(params, "/tool/category"),
        description: either(params, "/tool/description", "/description"),
        preview: either(params, "/preview/content", "/preview"),
        preview_type: text(params, "/preview/type"),
        risk: either(params, "/risk_assessment/level", "/risk_level"),
        reasons: texts(params.pointer("/risk_assessment/reasons")),
        reversible: params.pointer("/risk_assessment/reversible").and_then(Value::as_bool),
        timeout: params["timeout"].as_u64(),
        choices: params["choices"].as_array().map(|all| all.iter().map(choice).collect()),
    }
}

fn choice(shown: &Value) -> AnswerChoice {
    AnswerChoice { label: text(shown, "/label"), content: shown["content"].clone() }
}

fn done(params: &Value) -> CallEnded {
    CallEnded {
        execution: text(params, "/execution_id"),
        tool: text(params, "/tool_name"),
        status: text(params, "/status"),
        files: texts(params.pointer("/result/files_modified")),
        millis: params.pointer("/result/duration_ms").and_then(Value::as_u64).unwrap_or_default(),
        error: params.pointer("/error/message").and_then(Value::as_str).map(str::to_owned),
    }
}

fn text(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The text under one name, or else under the other.
fn either(value: &Value, at: &str, or: &str) -> String {
    match value.pointer(at).and_then(Value::as_str) {
        Some(found) => found.to_owned(),
        None => text(value, or),
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests;
