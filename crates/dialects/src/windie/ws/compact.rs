//! Having a conversation summarized.

use quintet_kernel::SessionId;
use quintet_kernel::command::Command;
use quintet_kernel::model::Usage;
use quintet_kernel::port::Error;
use quintet_kernel::session::Refusal;
use quintet_kernel::toolset::Toolset;

use super::{Connection, Out, Trouble};
use crate::windie::encode::Link;
use crate::windie::wire::{COMPACT_WHILE_BUSY, Context};

impl Connection {
    /// Has a conversation, or the one that was spoken of last, summarized. What comes of it is told on
    /// this connection, under the name of the request.
    pub(super) async fn compact(
        &mut self,
        id: &str,
        conversation: Option<String>,
        out: &mut Out,
    ) -> Result<(), Trouble> {
        let Some(conversation) = conversation.or_else(|| self.last.clone()) else {
            return Err("conversation_ref is required".into());
        };
        let Some(session) = self.app.known(&self.identity, &conversation).await? else {
            return Err("Conversation not found".into());
        };
        self.follow(&conversation, &session).await?;
        let done = self.app.ports.sessions.submit(&session, Command::Compact).await;
        match done {
            Ok(_) => {
                // None of it was read yet: conversations are read between messages.
                let told = self.subscription(&session);
                told.into_iter().for_each(|told| told.link.compacting(id));
                Ok(())
            }
            Err(Error::Refused(Refusal::Busy(_))) => Err(COMPACT_WHILE_BUSY.into()),
            Err(Error::Refused(Refusal::NothingToCompact)) => {
                out.frames.extend(self.nothing_to_compact(id, conversation, &session));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn nothing_to_compact(&self, id: &str, name: String, session: &SessionId) -> Vec<String> {
        let context = Context {
            session_id: Some(session.to_string()),
            user_id: Some(self.identity.id.clone()),
            conversation_ref: Some(name),
            turn_ref: None,
        };
        let mut link = Link::new(context, &Toolset::default(), Usage::default());
        link.compacting(id);
        let frames = link.not_compacted("nothing_to_compact", self.app.now());
        frames.into_iter().map(|frame| frame.text).collect()
    }
}
