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

/// The progress of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Progress {
    /// The model wrote more.
    Output(Channel, Arc<str>),
    /// A model call ended.
    StepEnded {
        /// False if the model call was interrupted.
        complete: bool,
    },
    /// The client must run a tool.
    Call(ToolCall),
    /// The answer ended.
    End(End),
}

/// A call that the client must run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) arguments: String,
}

/// The end of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) reason: EndReason,
    pub(super) usage: Usage,
    /// The time of the end, if it is in the journal.
    pub(super) at: Option<Time>,
}

/// The reason why an answer ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EndReason {
    /// The model finished.
    Finished(FinishReason),
    /// The run failed.
    Failed(Reply),
    /// The run was cancelled.
    Cancelled(Option<String>),
}

/// The error for a cancelled run.
pub(super) fn cancelled(reason: Option<&str>) -> Reply {
    let reason = reason.unwrap_or("another client cancelled it");
    let message = format!("The run was cancelled: {reason}");
    Reply::invalid(message).status(409).code("cancelled").after_start()
}

/// Writes an event of a stream. The encoded JSON has no line breaks.
pub(super) fn frame(event: Option<&str>, data: &Value, out: &mut Vec<u8>) {
    if let Some(event) = event {
        out.extend_from_slice(format!("event: {event}\n").as_bytes());
    }
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(data.to_string().as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// A comment that keeps a connection without events open.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";
