//! The messages and ids of the protocol.
//!
//! Fields of the specification come first; some have flat copies, because the original client reads those.

use quintet_kernel::{CallId, TurnId};
use serde::Serialize;
use serde_json::{Value, json};

use super::blocks::{Block, BlockKind};

/// The supported version of the protocol.
pub(super) const VERSION: &str = "1.0.0";
/// The longest message.
pub(super) const MESSAGE_BYTES_LIMIT: usize = 10 * 1024 * 1024;

pub(super) const AGENT_ERROR: i64 = -32000;
pub(super) const MODEL_ERROR: i64 = -32001;
pub(super) const TOOL_ERROR: i64 = -32002;
pub(super) const TIMEOUT: i64 = -32003;
pub(super) const CANCELLED: i64 = -32004;
pub(super) const PERMISSION_DENIED: i64 = -32005;

/// The query id of a turn.
pub(super) fn query_id(turn: &TurnId) -> String {
    format!("q-{turn}")
}

/// The turn of a query id.
pub(super) fn turn_of(query: &str) -> Option<TurnId> {
    TurnId::parse(query.strip_prefix("q-")?)
}

/// The execution id of a call.
pub(super) fn execution_id(call: &CallId) -> String {
    format!("exec-{call}")
}

/// The call of an execution id.
pub(super) fn call_of(execution: &str) -> Option<CallId> {
    CallId::parse(execution.strip_prefix("exec-")?)
}

/// A part of an answer. `content` is what the original client prints; it gets code as a block.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Token {
    pub(super) token: String,
    pub(super) content: String,
    pub(super) index: u64,
    pub(super) metadata: TokenMeta,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct TokenMeta {
    #[serde(rename = "type")]
    pub(super) kind: &'static str,
    /// The position in the answer, in bytes.
    pub(super) offset: u64,
}

#[derive(Serialize)]
pub(super) struct OneToken<'a> {
    pub(super) query_id: &'a str,
    #[serde(flatten)]
    pub(super) token: &'a Token,
}

#[derive(Serialize)]
pub(super) struct ManyTokens<'a> {
    pub(super) query_id: &'a str,
    pub(super) tokens: &'a [Token],
}

/// Encodes a block as in the specification.
pub(super) fn block(block: &Block) -> Value {
    let mut metadata = json!({
        "diff": block.kind == BlockKind::Diff || block.language.as_deref() == Some("diff"),
        "executable": block.meta.executable,
    });
    if let Some(file) = &block.meta.file {
        metadata["file"] = file.as_str().into();
    }
    if let Some(lines) = &block.meta.lines {
        metadata["lines"] = lines.as_str().into();
    }
    let mut shown = json!({
        "type": block.kind.name(),
        "content": block.content,
        "metadata": metadata,
        "annotations": [],
    });
    if let Some(language) = &block.language {
        shown["language"] = language.as_str().into();
    }
    shown
}
