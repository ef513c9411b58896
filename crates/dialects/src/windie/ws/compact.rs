//! Summarizes a conversation on request.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::{Event, Record};
use quintet_kernel::port::Error;
use quintet_kernel::session::Refusal;

use super::{Connection, PendingOutput, Trouble};
use crate::windie::wire::COMPACT_WHILE_BUSY;

impl Connection {
    /// Has a conversation, or the one that was spoken of last, summarized. What comes of it is told on
    /// this connection, under the name of the request.
    pub(super) async fn compact(
        &mut self,
        id: &str,
        conversation: Option<String>,
        out: &mut PendingOutput,
    ) -> Result<(), Trouble> {
        let Some(conversation) = conversation.or_else(|| self.last.clone()) else {
            return Err("conversation_ref is required".into());
        };
        let Some(session) = self.app.known(&self.identity, &conversation).await? else {
            return Err("Conversation not found".into());
        };
        self.follow(&conversation, &session).await?;
        let now = self.app.now();
        let done = self.app.ports.sessions.submit(&session, Command::Compact).await;
        let Some(told) = self.subscription(&session) else { return Ok(()) };
        match done {
            Ok(receipt) => {
                let requested = |record: &&Arc<Record>| {
                    matches!(record.event, Event::CompactionRequested { .. })
                };
                if let Some(record) = receipt.records.iter().find(requested) {
                    told.link.compacting(id, record.seq);
                }
                Ok(())
            }
            Err(Error::Refused(Refusal::Busy(_))) => Err(COMPACT_WHILE_BUSY.into()),
            Err(Error::Refused(Refusal::NothingToCompact)) => {
                let frame = told.link.not_compacted(id, "nothing_to_compact", now);
                out.frames.push(frame.text);
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
