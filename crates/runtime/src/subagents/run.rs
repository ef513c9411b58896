//! One subagent: started, followed and stopped on behalf of a call.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::event::{Ended, Event, SubagentUpdate};
use quintet_kernel::port::{BoxFuture, Error, Sessions as _, StorageError};
use quintet_kernel::subagent::{self, SubagentStart, Task};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, Cursor, Item, SessionId, State};

use super::stopped;
use crate::backoff::Backoff;
use crate::runtime::Runtime;

/// A call that runs a subagent.
pub(super) struct SubagentRun {
    pub(super) runtime: Runtime,
    pub(super) parent: SessionId,
    pub(super) call: CallId,
}

impl SubagentRun {
    /// Starts or finds the subagent and waits for its result.
    pub(super) async fn run_to_end(&self, task: Task) -> Outcome {
        match self.work(task).await {
            Ok(outcome) => outcome,
            // The call is repeated after the restart.
            Err(Error::Closing) => stopped(),
            Err(Error::Refused(refusal)) => Outcome::failure(refusal.to_string()),
            Err(error) => Outcome::failure(format!("the subagent is lost: {error}")),
        }
    }

    /// Cancels the subagent, if there is one.
    pub(super) async fn stop(&self) -> Outcome {
        // Fails if the daemon shuts down: then the work continues after the restart.
        if let Ok(parent) = self.runtime.view(&self.parent).await
            && let Some(known) = parent.subagents.of(&self.call)
            && let Ok(news) = self.cancel(&known.session).await
        {
            let _ = self.update_parent(&known.session, news).await;
        }
        stopped()
    }

    /// Starts the subagent. The parent records its id first, so that a crash in between
    /// leaves no unknown session. An existing subagent is continued.
    async fn work(&self, task: Task) -> Result<Outcome, Error> {
        let session = self.runtime.deps().clock.stamp().id();
        let spawn = Command::SpawnSubagent { call: self.call.clone(), session, task };
        self.runtime.submit(&self.parent, spawn).await?;
        let parent = self.runtime.view(&self.parent).await?;
        // If policy refused the subagent, the kernel ended the call.
        let Some(known) = parent.subagents.of(&self.call) else { return Ok(stopped()) };
        let start = subagent::subagent_start(&parent, known);
        if let Some(start) = &start {
            self.runtime.ensure(&known.session, start.origin.clone()).await?;
        }
        self.follow(&parent, &known.session, start).await
    }

    async fn follow(
        &self,
        parent: &State,
        child: &SessionId,
        start: Option<SubagentStart>,
    ) -> Result<Outcome, Error> {
        let state = self.runtime.view(child).await?;
        let mut follow = self.runtime.follow(child, Cursor::after(state.head)).await?;
        match (state.turns.last(), start) {
            (None, Some(SubagentStart { first_message, .. })) => {
                self.runtime.submit(child, first_message).await?;
            }
            (Some(_), _) if state.busy() => {
                for (session, news) in subagent::missed_updates(parent, &self.call, &state) {
                    self.update_parent(&session, news).await?;
                }
            }
            (_, _) => return self.complete(child).await,
        }
        let mut steps = state.open.as_ref().map_or(0, |open| u64::from(open.steps));
        while let Some(items) = follow.next().await? {
            for item in items {
                let Item::Event(record) = &item else { continue };
                if matches!(record.event, Event::StepStarted { .. }) {
                    steps += 1;
                }
                if matches!(record.event.ended(), Some(Ended::Turn(_))) {
                    return self.complete(child).await;
                }
                for (session, news) in subagent::parent_updates(child, &record.event, steps) {
                    self.update_parent(&session, news).await?;
                }
            }
        }
        Err(Error::Closing)
    }

    async fn complete(&self, child: &SessionId) -> Result<Outcome, Error> {
        let (news, outcome) = subagent::subagent_result(&*self.at_rest(child).await?);
        self.update_parent(child, news).await?;
        Ok(outcome)
    }

    /// A session whose turn has ended, once its own subagents have ended: their cost is
    /// part of its cost.
    async fn at_rest(&self, child: &SessionId) -> Result<Arc<State>, Error> {
        let mut state = self.runtime.view(child).await?;
        let mut follow = self.runtime.follow(child, Cursor::after(state.head)).await?;
        while state.subagents.orphans().next().is_some() {
            tokio::select! {
                items = follow.next() => items?.ok_or(Error::Closing)?,
                () = self.runtime.closing().cancelled() => return Err(Error::Closing),
            };
            state = self.runtime.view(child).await?;
        }
        Ok(state)
    }

    async fn update_parent(&self, session: &SessionId, news: SubagentUpdate) -> Result<(), Error> {
        let (call, session) = (self.call.clone(), session.clone());
        let news = Command::Subagent { call, session, news };
        self.runtime.submit(&self.parent, news).await.map(drop)
    }

    /// Cancels a session's work, waits until it ends, and returns its result.
    async fn cancel(&self, child: &SessionId) -> Result<SubagentUpdate, Error> {
        let cancel = Command::Cancel { reason: Some("the parent was cancelled".into()) };
        let rests = async {
            self.runtime.submit(child, cancel).await?;
            self.at_rest(child).await
        };
        let lost = |result: String| SubagentUpdate::Completed {
            result,
            ok: false,
            usage: Default::default(),
        };
        match rests.await {
            Ok(state) => Ok(subagent::subagent_result(&state).0),
            // The subagent could not start, or the daemon crashed before it existed.
            Err(Error::NotFound(_) | Error::Refused(_)) => Ok(lost("it never began".into())),
            // The session cannot be read, so nothing can run for it.
            Err(Error::Storage(error @ StorageError::Damaged(_))) => Ok(lost(error.to_string())),
            Err(error) => Err(error),
        }
    }
}

/// Stops the subagent of a call that has ended; safe to repeat.
pub(crate) fn cancel(
    runtime: Runtime,
    parent: &State,
    session: &SessionId,
) -> BoxFuture<'static, Command> {
    let known = parent.subagents.orphans().find(|known| known.session == *session);
    let call = known.map(|known| known.call.clone());
    let (parent, session) = (parent.id.clone(), session.clone());
    Box::pin(async move {
        let Some(call) = call else { return Command::Wake };
        let run = SubagentRun { runtime, parent, call: call.clone() };
        let mut backoff = Backoff::new();
        loop {
            match run.cancel(&session).await {
                Ok(news) => return Command::Subagent { call, session, news },
                Err(error) => {
                    tracing::warn!(%session, %error, "could not stop a subagent; retrying");
                    backoff.wait().await;
                }
            }
        }
    })
}
