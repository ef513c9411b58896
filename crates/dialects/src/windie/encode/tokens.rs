//! Token counts of an answer, in the form of the protocol.

use quintet_kernel::model::Usage;
use serde_json::{Value, json};

/// The payload of a count; `conversation` is the number of tokens of all model calls of the session.
pub(crate) fn payload(usage: Usage, conversation: u64) -> Value {
    let visible = usage.output.saturating_sub(usage.reasoning);
    let mut count = json!({
        "prompt_tokens": usage.input,
        "visible_output_tokens": visible,
        "thinking_tokens": (!usage.estimated).then_some(usage.reasoning),
        "output_tokens_total": usage.output.max(usage.reasoning),
        "total_tokens": usage.input.saturating_add(usage.output.max(usage.reasoning)),
        "conversation_tokens": conversation,
        "usage_source": if usage.estimated { "estimated" } else { "provider" },
    });
    if !usage.estimated {
        count["cached_tokens"] = usage.cached.into();
        count["cache_hit"] = (usage.cached > 0).into();
        count["cache_status"] = if usage.cached > 0 { "hit" } else { "miss" }.into();
    }
    count
}

#[cfg(test)]
mod tests;
