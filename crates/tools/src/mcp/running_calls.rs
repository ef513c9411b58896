//! The calls that run at a server: whose they are, where their progress goes, and how long each may take.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use quintet_kernel::SessionId;
use quintet_kernel::port::ToolContext;
use rmcp::model::ProgressToken;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// The calls that run, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct RunningCalls(Mutex<Vec<RunningCall>>);

/// A call that runs at a server.
#[derive(Clone)]
pub(super) struct RunningCall {
    /// Known once the call was sent; its server may ask before that.
    pub(super) token: Arc<OnceLock<ProgressToken>>,
    session: SessionId,
    pub(super) context: ToolContext,
    pub(super) timer: Arc<CallTimer>,
}

/// A call in the list of those that run, until this is dropped.
#[derive(Debug)]
pub(super) struct ListedCall<'a> {
    calls: &'a RunningCalls,
    pub(super) call: RunningCall,
}

impl RunningCalls {
    /// Lists a call until what is returned is dropped.
    pub(super) fn list(&self, call: RunningCall) -> ListedCall<'_> {
        self.lock().push(call.clone());
        ListedCall { calls: self, call }
    }

    pub(super) fn find(&self, token: &ProgressToken) -> Option<RunningCall> {
        self.lock().iter().find(|call| call.token.get() == Some(token)).cloned()
    }

    /// The call that a question of the server belongs to: the newest, if all calls are of one session. Whose
    /// user is meant where there are several nobody can say.
    pub(super) fn asking(&self) -> Option<RunningCall> {
        let running = self.lock();
        let newest = running.last()?;
        running.iter().all(|call| call.session == newest.session).then(|| newest.clone())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<RunningCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunningCall {
    pub(super) fn new(session: SessionId, context: ToolContext, timer: CallTimer) -> Self {
        Self { token: Arc::default(), session, context, timer: Arc::new(timer) }
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.token, &other.token)
    }
}

impl std::fmt::Debug for RunningCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningCall").field("token", &self.token).finish_non_exhaustive()
    }
}

impl Drop for ListedCall<'_> {
    fn drop(&mut self) {
        self.calls.lock().retain(|running| !running.is(&self.call));
    }
}

/// The time limit of a call. Progress restarts it, and it is paused while the user is asked.
#[derive(Debug)]
pub(super) struct CallTimer {
    timeout: Duration,
    /// The limit however much progress is reported.
    total: Duration,
    timing: watch::Sender<Timing>,
}

#[derive(Clone, Copy, Debug)]
struct Timing {
    began: Instant,
    progressed: Instant,
    open_questions: usize,
}

impl CallTimer {
    pub(super) fn new(timeout: Duration, total: Duration) -> Self {
        let now = Instant::now();
        let timing = Timing { began: now, progressed: now, open_questions: 0 };
        Self { timeout, total, timing: watch::Sender::new(timing) }
    }

    /// The server reported progress.
    pub(super) fn progressed(&self) {
        self.timing.send_modify(|timing| timing.progressed = Instant::now());
    }

    /// The user is asked.
    pub(super) fn asked(&self) {
        self.timing.send_modify(|timing| timing.open_questions += 1);
    }

    /// A question is closed.
    pub(super) fn answered(&self) {
        let now = Instant::now();
        self.timing.send_modify(|timing| {
            (timing.began, timing.progressed) = (now, now);
            timing.open_questions = timing.open_questions.saturating_sub(1);
        });
    }

    /// Resolves when the time is up.
    pub(super) async fn expired(&self) {
        let mut changes = self.timing.subscribe();
        loop {
            let Timing { began, progressed, open_questions } = *changes.borrow_and_update();
            let deadline = (progressed + self.timeout).min(began + self.total);
            tokio::select! {
                () = sleep_until(deadline), if open_questions == 0 => return,
                _ = changes.changed() => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
