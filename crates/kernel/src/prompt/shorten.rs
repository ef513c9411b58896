//! Shortens old and very long results in a prompt, so that a long turn can continue.

use crate::model::TokenCount;
use crate::session::State;

/// Length to which an old result is shortened, in bytes.
const OLD_RESULT_LIMIT: usize = 1_000;

/// How results and pictures are shortened in a prompt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shorten {
    /// Results of messages before this index are old: only their beginning and end are shown, and
    /// only the names of pictures.
    pub(crate) before: usize,
    /// Maximum total length of the results of one response, in bytes.
    pub(crate) step_bytes: usize,
}

impl Shorten {
    /// The limits for a session's prompts: the results of one step never fill more than half of the context
    /// window.
    pub(crate) fn of(state: &State) -> Self {
        let half = state.window().saturating_mul(TokenCount::BYTES) / 2;
        let step_bytes = usize::try_from(half).unwrap_or(usize::MAX);
        Self { before: state.compaction.shortened, step_bytes }
    }

    /// The context window for which the results of one step have at most this many bytes.
    pub(crate) fn window_of(step_bytes: usize) -> u64 {
        step_bytes as u64 * 2 / TokenCount::BYTES
    }

    /// The same limits, with every result treated as old.
    pub(crate) fn with_all_old(self) -> Self {
        Self { before: usize::MAX, ..self }
    }

    /// True if a message is old.
    pub(crate) fn is_old(self, at: usize) -> bool {
        at < self.before
    }

    /// Maximum length of one of `together` results of one response, in bytes.
    pub(crate) fn result_bytes(self, at: usize, together: usize) -> usize {
        let most = self.step_bytes / together.max(1);
        if self.is_old(at) { most.min(OLD_RESULT_LIMIT) } else { most }
    }
}

/// The beginning and the end of a text that is longer than `most` bytes.
pub(crate) fn shortened(text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let head = text.floor_char_boundary(most / 3 * 2);
    let tail = text.ceil_char_boundary(text.len() - most / 3);
    format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_bytes_are_counted_and_no_character_is_split() {
        assert_eq!(shortened("short".into(), 5), "short");
        assert_eq!(shortened("abcdefghijkl".into(), 6), "abcd\n[6 bytes left out]\nkl");
        let long = shortened("€".repeat(1_000), 100);
        assert!(long.len() < 140 && long.starts_with("€€") && long.ends_with("€€"), "{long}");
    }
}
