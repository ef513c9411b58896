//! The figures of one session, from its events.

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::port::{Error, ModelProfiles, Sessions};
use quintet_kernel::{Cursor, Item, SessionId, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::calls::{CallReader, ModelCall};

/// The usage of a session up to an event.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct SessionFigures {
    head: Seq,
    calls: CallReader,
    compactions: Vec<Compaction>,
}

/// A summary that replaces older messages from here on.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Compaction {
    seq: Seq,
    at: Time,
    messages: u64,
    before: u64,
    after: Option<u64>,
}

impl Compaction {
    pub(super) fn encode(&self) -> Value {
        json!({
            "seq": self.seq, "at": self.at.micros(), "messages": self.messages,
            "tokens_before": self.before, "tokens_after": self.after,
        })
    }
}

impl SessionFigures {
    /// The last event that was read.
    pub(super) fn head(&self) -> Seq {
        self.head
    }

    /// The model calls, in order.
    pub(super) fn calls(&self) -> &[ModelCall] {
        self.calls.calls()
    }

    /// The compactions after an event, in order.
    pub(super) fn compactions(&self, after: Seq) -> impl Iterator<Item = &Compaction> {
        self.compactions.iter().filter(move |one| one.seq > after)
    }

    /// Stored figures with current prices.
    pub(super) fn restored(mut self, models: &(impl ModelProfiles + ?Sized)) -> Self {
        self.calls.restore(models);
        self
    }

    /// Reads the new events of the session.
    pub(super) async fn read_on(
        &mut self,
        archive: &dyn Sessions,
        session: &SessionId,
        models: &(impl ModelProfiles + ?Sized),
    ) -> Result<(), Error> {
        let mut follow = archive.follow(session, Cursor::after(self.head)).await?;
        while self.head < follow.head() {
            let Some(items) = follow.next().await? else { break };
            for item in &items {
                if let Item::Event(record) = item {
                    self.take(record, models);
                }
            }
            self.head = follow.position().seq;
        }
        Ok(())
    }

    /// Reads the next event.
    pub(super) fn take(&mut self, record: &Record, models: &(impl ModelProfiles + ?Sized)) {
        self.calls.take(record, models);
        if let Event::Compacted { messages, tokens_before, tokens_after, .. } = &record.event {
            self.compactions.push(Compaction {
                seq: record.seq,
                at: record.at,
                messages: *messages,
                before: *tokens_before,
                after: *tokens_after,
            });
        }
    }
}
