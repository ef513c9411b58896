//! Streams answers: events of a session, or chunks of a provider, become [`Progress`], which becomes the frames of
//! either endpoint.

pub(super) mod chat;
pub(super) mod model_answer;
pub(super) mod response;
pub(super) mod turn;

use std::sync::Arc;

use quintet_kernel::Time;
use quintet_kernel::model::{Channel, FinishReason, Usage};
use serde_json::Value;

use super::reply::Reply;

/// What happens to an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Progress {
    /// The model wrote more.
    Output(Channel, Arc<str>),
    /// A model call ended. `whole` is false if it was interrupted.
    StepOver {
        /// True if the model completed what it wrote.
        whole: bool,
    },
    /// The caller is to run a tool.
    Call(ToolCall),
    /// The answer ended.
    End(End),
}

/// A call that the caller is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: String,
}

/// The end of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) how: Ended,
    pub(super) usage: Usage,
    /// The time, if the journal has it.
    pub(super) at: Option<Time>,
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ended {
    /// The answer is complete, as far as it goes.
    Finished(FinishReason),
    /// The run failed.
    Failed(Reply),
    /// The run was cancelled.
    Cancelled(Option<String>),
}

/// Why a run that was cancelled gives no answer.
pub(super) fn cancelled(reason: Option<&str>) -> Reply {
    let reason = reason.unwrap_or("another client cancelled it");
    let message = format!("The run was cancelled: {reason}");
    Reply::invalid(message).status(409).code("cancelled").begun()
}

/// Writes an event of a stream. JSON has no line breaks.
pub(super) fn frame(event: Option<&str>, data: &Value, out: &mut Vec<u8>) {
    if let Some(event) = event {
        out.extend_from_slice(format!("event: {event}\n").as_bytes());
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data.to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// Written while nothing happens, so that the connection stays open.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";
