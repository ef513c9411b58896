//! Objects of the protocol: fields of requests, and parts that answers share.

pub(super) mod fields;

use quintet_kernel::Time;
use quintet_kernel::model::{FinishReason, Usage};
use serde_json::{Value, json};

/// Seconds since 1970, as in all objects of the protocol.
pub(super) fn seconds(time: Time) -> i64 {
    time.micros().div_euclid(1_000_000)
}

/// A model of the list.
pub(super) fn model(id: &str, owned_by: &str, created: i64) -> Value {
    json!({ "id": id, "object": "model", "created": created, "owned_by": owned_by })
}

/// Token counts in the format of chat completions.
pub(super) fn chat_usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": { "cached_tokens": usage.cached, "audio_tokens": 0 },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

/// Token counts in the format of responses.
pub(super) fn response_usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": { "cached_tokens": usage.cached },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.total(),
    })
}

/// The finish reason on the wire; the protocol has only four.
pub(super) fn finish_reason(finish: &FinishReason) -> &'static str {
    match finish {
        FinishReason::Stop | FinishReason::Other(_) => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::Refused => "content_filter",
    }
}
