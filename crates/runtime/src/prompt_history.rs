//! Prompts of past model calls, assembled again from the journal.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{Error, Page};
use quintet_kernel::{SessionId, State};

use crate::runtime::Runtime;

const READ_PAGE: Page = Page { events: 1024, bytes: 4 * 1024 * 1024 };

impl Runtime {
    /// The session as it was right after an event.
    pub(crate) async fn state_after(
        &self,
        session: &SessionId,
        event: Seq,
    ) -> Result<Option<State>, Error> {
        let deps = self.deps();
        let mut state = State::new(session.clone(), Arc::clone(&deps.rules));
        while state.head < event {
            let mut records = deps.journal.read(session, state.head, READ_PAGE).await?;
            records.retain(|record| record.seq <= event);
            if records.is_empty() {
                break;
            }
            state.replay(&records);
        }
        if state.created.is_none() {
            return Err(Error::NotFound(session.clone()));
        }
        if state.head != event {
            return Ok(None);
        }
        deps.refresh_models(&mut state, &Command::Wake);
        Ok(Some(state))
    }
}
