//! Sessions that other nodes own, as their journals have them: read once, then only what is new.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use quintet_kernel::command::Command;
use quintet_kernel::port::Error;
use quintet_kernel::{SessionId, State};

use crate::load::{read, read_on};
use crate::runtime::{Runtime, lock};

/// Sessions that are kept; the one that was looked at longest ago goes first.
const KEPT: usize = 32;

/// The sessions that were looked at last.
#[derive(Debug, Default)]
pub(super) struct Views {
    kept: Mutex<VecDeque<Arc<State>>>,
}

impl Views {
    fn take(&self, session: &SessionId) -> Option<Arc<State>> {
        let mut kept = lock(&self.kept);
        let at = kept.iter().position(|state| state.id == *session)?;
        kept.remove(at)
    }

    fn keep(&self, state: Arc<State>) {
        let mut kept = lock(&self.kept);
        kept.retain(|other| other.id != state.id);
        kept.push_back(state);
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }
}

impl Runtime {
    /// A session as its journal has it, without owning it.
    pub(crate) async fn view_elsewhere(&self, session: &SessionId) -> Result<Arc<State>, Error> {
        let (parts, views) = (self.parts(), &self.shared().membership.views);
        let known = views.take(session);
        let head = parts.journal.head(session).await?;
        let head = head.ok_or_else(|| Error::NotFound(session.clone()))?;
        let mut state = match known {
            Some(state) if state.head <= head => state,
            _ => Arc::new(read(&*parts.journal, &parts.rules, session).await?.0),
        };
        if state.head < head {
            read_on(&*parts.journal, Arc::make_mut(&mut state)).await?;
        }
        if state.created.is_none() {
            return Err(Error::NotFound(session.clone()));
        }
        let changing = Arc::make_mut(&mut state);
        parts.tell_models(changing, &Command::Wake);
        parts.refresh_tools(changing);
        views.keep(Arc::clone(&state));
        Ok(state)
    }
}
