//! Messages of a session's last prompt, reused in the next one, which is mostly the same.

use std::sync::Arc;

use crate::message::Message;
use crate::model::PromptMessage;

use super::HistoryEntry;

/// Messages of a session's last prompt, by their index in the session.
#[derive(Debug, Default)]
pub struct PromptCache {
    /// The index of the first slot.
    first: usize,
    slots: Vec<Option<Cached>>,
}

#[derive(Debug)]
struct Cached {
    /// The source message. Holding a reference makes later changes copy the message, so the same
    /// allocation means unchanged content.
    source: Arc<Message>,
    /// The limit in bytes with which the message was written.
    limit: usize,
    /// True if no other message of the prompt depends on this one, such as results of its calls.
    alone: bool,
    written: Arc<PromptMessage>,
}

impl PromptCache {
    /// Drops messages before this index: no prompt uses them any more.
    pub(super) fn begin_at(&mut self, first: usize) {
        let gone = first.saturating_sub(self.first).min(self.slots.len());
        if first < self.first {
            self.slots.clear();
        }
        self.slots.drain(..gone);
        self.first = first;
    }

    /// The cached message of an entry, if it is the entry's only contribution to the prompt. Does not inspect the
    /// entry: in a long session most of a prompt is found here.
    pub(super) fn alone(&self, entry: &HistoryEntry<'_>) -> Option<Arc<PromptMessage>> {
        let cached = self.slots.get(entry.at.checked_sub(self.first)?)?.as_ref()?;
        let same = cached.alone && Arc::ptr_eq(&cached.source, entry.message);
        same.then(|| Arc::clone(&cached.written))
    }

    /// Records that the cached message of an entry is its only contribution to the prompt.
    pub(super) fn note_alone(&mut self, entry: &HistoryEntry<'_>) {
        let slot = entry.at.checked_sub(self.first).and_then(|n| self.slots.get_mut(n));
        if let Some(Some(cached)) = slot {
            cached.alone = true;
        }
    }

    /// The cached message for this limit, or the one that `write` creates now.
    pub(super) fn message(
        &mut self,
        entry: &HistoryEntry<'_>,
        limit: usize,
        write: impl FnOnce(&Message) -> PromptMessage,
    ) -> Arc<PromptMessage> {
        let Some(n) = entry.at.checked_sub(self.first) else {
            return Arc::new(write(entry.message));
        };
        if self.slots.len() <= n {
            self.slots.resize_with(n + 1, || None);
        }
        let same =
            |cached: &&Cached| cached.limit == limit && Arc::ptr_eq(&cached.source, entry.message);
        if let Some(cached) = self.slots[n].as_ref().filter(same) {
            return Arc::clone(&cached.written);
        }
        let written = Arc::new(write(entry.message));
        let (source, kept) = (Arc::clone(entry.message), Arc::clone(&written));
        self.slots[n] = Some(Cached { source, limit, alone: false, written: kept });
        written
    }
}
