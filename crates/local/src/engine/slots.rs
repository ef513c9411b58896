//! Tracks which tokens the model has evaluated, so that none is evaluated twice.
//!
//! A slot is a sequence of the model's KV cache and holds its tokens. A prompt that continues a slot's tokens
//! takes that slot over; one that shares only their beginning gets a slot of its own and a copy of the
//! beginning.

use llama_cpp_2::token::LlamaToken;

/// Number of sequences in the KV cache.
pub(super) const SLOTS: usize = 4;
/// A prompt takes a slot over if at most this many of its tokens are dropped.
const DROPPED_TOKENS_LIMIT: usize = 32;

/// The sequences of the KV cache.
#[derive(Debug, Default)]
pub(super) struct Slots {
    rows: [Row; SLOTS],
    uses: u64,
}

#[derive(Debug, Default)]
struct Row {
    tokens: Vec<LlamaToken>,
    used: u64,
}

/// The slot for a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The slot for the prompt.
    pub(super) slot: usize,
    /// The slot with the longest common prefix.
    pub(super) like: usize,
    /// Length of that prefix, in tokens.
    pub(super) known: usize,
}

impl Slots {
    /// Finds the slot for a prompt. At least its last token is evaluated again, because the answer
    /// follows from it.
    pub(super) fn place(&mut self, prompt: &[LlamaToken]) -> Place {
        let shared = |row: &Row| common(&row.tokens, &prompt[..prompt.len().saturating_sub(1)]);
        let known: Vec<usize> = self.rows.iter().map(shared).collect();
        let like = (0..SLOTS).max_by_key(|&n| (known[n], self.rows[n].used)).unwrap_or(0);
        let goes_on = self.rows[like].tokens.len() - known[like] <= DROPPED_TOKENS_LIMIT;
        let slot = if goes_on { like } else { self.oldest(like).unwrap_or(like) };
        let place = Place { slot, like, known: known[like] };
        self.uses += 1;
        self.rows[slot] = Row { tokens: prompt[..place.known].to_vec(), used: self.uses };
        place
    }

    /// Records that the model has evaluated these tokens, too.
    pub(super) fn extend(&mut self, slot: usize, tokens: &[LlamaToken]) {
        self.rows[slot].tokens.extend_from_slice(tokens);
    }

    /// Sets the evaluated tokens of a slot.
    pub(super) fn set(&mut self, slot: usize, tokens: &[LlamaToken]) {
        self.rows[slot].tokens = tokens.to_vec();
    }

    /// Number of tokens in a slot.
    pub(super) fn len(&self, slot: usize) -> usize {
        self.rows[slot].tokens.len()
    }

    /// Evicts the least recently used other slot; `None` if there is no other.
    pub(super) fn evict(&mut self, but: usize) -> Option<usize> {
        let filled = |n: &usize| *n != but && !self.rows[*n].tokens.is_empty();
        let slot = (0..SLOTS).filter(filled).min_by_key(|&n| self.rows[n].used)?;
        self.rows[slot] = Row::default();
        Some(slot)
    }

    fn oldest(&self, but: usize) -> Option<usize> {
        (0..SLOTS).filter(|&n| n != but).min_by_key(|&n| self.rows[n].used)
    }
}

fn common(left: &[LlamaToken], right: &[LlamaToken]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

#[cfg(test)]
mod tests;
