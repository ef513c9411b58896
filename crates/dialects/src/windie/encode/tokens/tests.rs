//! Token counts from a provider, and estimated ones.

use super::*;

#[test]
fn the_parts_make_up_the_whole() {
    let usage = Usage { input: 150, output: 50, reasoning: 12, cached: 100, ..Usage::default() };
    let expected = json!({
        "prompt_tokens": 150,
        "visible_output_tokens": 38,
        "thinking_tokens": 12,
        "output_tokens_total": 50,
        "total_tokens": 200,
        "conversation_tokens": 3200,
        "usage_source": "provider",
        "cached_tokens": 100,
        "cache_hit": true,
        "cache_status": "hit",
    });
    assert_eq!(payload(usage, 3200), expected);
}

#[test]
fn a_guess_is_called_one() {
    let usage = Usage { input: 150, output: 38, estimated: true, ..Usage::default() };
    let expected = json!({
        "prompt_tokens": 150,
        "visible_output_tokens": 38,
        "thinking_tokens": null,
        "output_tokens_total": 38,
        "total_tokens": 188,
        "conversation_tokens": 3200,
        "usage_source": "estimated",
    });
    assert_eq!(payload(usage, 3200), expected);
}
