//! What models were sent, assembled again from the journal.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{BoxFuture, Error, Page, Prompts};
use quintet_kernel::{SessionId, State};

use crate::runtime::Runtime;

const PAGE: Page = Page { events: 1024, bytes: 4 * 1024 * 1024 };

impl Prompts for Runtime {
    fn session_at<'a>(
        &'a self,
        session: &'a SessionId,
        event: Seq,
    ) -> BoxFuture<'a, Result<Option<State>, Error>> {
        Box::pin(async move {
            let parts = self.parts();
            let mut state = State::new(session.clone(), Arc::clone(&parts.rules));
            while state.head < event {
                let mut records = parts.journal.read(session, state.head, PAGE).await?;
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
            parts.tell_models(&mut state, &Command::Wake);
            Ok(Some(state))
        })
    }
}
