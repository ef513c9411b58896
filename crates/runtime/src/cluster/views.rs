//! Cached states of sessions that other nodes own. After the first read, only new events are read.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use quintet_kernel::command::Command;
use quintet_kernel::port::Error;
use quintet_kernel::{SessionId, State};

use crate::runtime::{Runtime, lock};
use crate::session::recovery::{read, read_on};

/// Maximum number of cached sessions; the least recently used is dropped first.
const CACHED_VIEWS_LIMIT: usize = 32;

/// The most recently viewed sessions.
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
        if kept.len() > CACHED_VIEWS_LIMIT {
            kept.pop_front();
        }
    }
}

impl Runtime {
    /// The state of a session from its journal, without owning the session.
    pub(crate) async fn view_elsewhere(&self, session: &SessionId) -> Result<Arc<State>, Error> {
        let (deps, views) = (self.deps(), &self.shared().membership.views);
        let known = views.take(session);
        let head = deps.journal.head(session).await?;
        let head = head.ok_or_else(|| Error::NotFound(session.clone()))?;
        let mut state = match known {
            Some(state) if state.head <= head => state,
            _ => Arc::new(read(&*deps.journal, &deps.rules, session).await?.0),
        };
        if state.head < head {
            read_on(&*deps.journal, Arc::make_mut(&mut state)).await?;
        }
        if state.created.is_none() {
            return Err(Error::NotFound(session.clone()));
        }
        let changing = Arc::make_mut(&mut state);
        deps.refresh_models(changing, &Command::Wake);
        deps.refresh_tools(changing);
        views.keep(Arc::clone(&state));
        Ok(state)
    }
}
