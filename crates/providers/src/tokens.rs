//! Estimates the tokens of prompts and answers, for providers that do not report them.
//!
//! Estimates are marked as such. Even with the model's tokenizer the count is not exact, because it is unknown how
//! the API formats a request.

use quintet_kernel::model::{Prompt, PromptMessage, PromptPart, Usage};

/// Average bytes per token, in most languages and tokenizers.
const BYTES_PER_TOKEN: u64 = 4;
/// Estimated tokens of a picture or another file.
const TOKENS_PER_FILE: u64 = 1_000;

/// The estimated usage of a call: tokens of the prompt, and bytes of the answer.
pub(crate) fn estimate(read: u64, written: u64) -> Usage {
    Usage {
        input: read,
        output: written.div_ceil(BYTES_PER_TOKEN),
        estimated: true,
        ..Usage::default()
    }
}

/// The files in a prompt: their number, and their length in base64.
pub(crate) fn files(prompt: &Prompt) -> (u64, u64) {
    let parts = prompt.messages.iter().flat_map(|message| match &**message {
        PromptMessage::User(parts) | PromptMessage::Result { media: parts, .. } => parts.as_slice(),
        PromptMessage::System(_) | PromptMessage::Assistant { .. } => &[],
    });
    let sizes = parts.filter_map(|part| match part {
        PromptPart::Text(_) => None,
        PromptPart::Media { content, .. } => Some(content.len() as u64),
    });
    sizes.fold((0, 0), |(count, bytes), size| (count + 1, bytes + size.div_ceil(3) * 4))
}

/// Estimates the tokens of a request from the length of its body and its files.
pub(crate) fn of_request(body: usize, (count, bytes): (u64, u64)) -> u64 {
    (body as u64).saturating_sub(bytes) / BYTES_PER_TOKEN + count * TOKENS_PER_FILE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_not_counted_by_length() {
        assert_eq!(of_request(400, (0, 0)), 100);
        assert_eq!(of_request(400_400, (1, 400_000)), 1_100);
        let usage = estimate(7, 9);
        assert_eq!((usage.input, usage.output, usage.estimated), (7, 3, true));
    }
}
