//! Compacts a conversation on request.

use std::sync::Arc;

use axum::extract::ws::Message;
use quintet_kernel::command::Command;
use quintet_kernel::event::{Event, Record};
use quintet_kernel::port::Error;
use quintet_kernel::session::Refusal;

use super::{Connection, RequestError};
use crate::windie::wire::COMPACT_WHILE_BUSY;

impl Connection {
    /// Compacts a conversation, or that of the last message. The frames about it carry the id of the
    /// request and are sent on this connection alone.
    pub(super) async fn compact(
        &mut self,
        id: &str,
        conversation: Option<String>,
    ) -> Result<(), RequestError> {
        let Some(conversation) = conversation.or_else(|| self.last.clone()) else {
            return Err("conversation_ref is required".into());
        };
        let Some(session) = self.app.known(&self.identity, &conversation).await? else {
            return Err("Conversation not found".into());
        };
        self.follow(&conversation, &session).await?;
        let now = self.app.now();
        let receipt = self.app.ports.sessions.submit(&session, Command::Compact).await;
        let Some(subscription) = self.subscription(&session) else { return Ok(()) };
        match receipt {
            Ok(receipt) => {
                let is_request = |record: &&Arc<Record>| {
                    matches!(record.event, Event::CompactionRequested { .. })
                };
                if let Some(record) = receipt.records.iter().find(is_request) {
                    subscription.link.compacting(id, record.seq);
                }
                Ok(())
            }
            Err(Error::Refused(Refusal::Busy(_))) => Err(COMPACT_WHILE_BUSY.into()),
            Err(Error::Refused(Refusal::NothingToCompact)) => {
                let frame = subscription.link.not_compacted(id, "nothing_to_compact", now);
                self.outbox.push(Message::Text(frame.text.into()));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
