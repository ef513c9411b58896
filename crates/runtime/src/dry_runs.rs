//! Dry runs: the same decisions on a state that is then discarded.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::{BoxFuture, DryRuns, Error, Sessions as _};
use quintet_kernel::session::next;
use quintet_kernel::{Effect, SessionId, State, prompt};

use crate::runtime::Runtime;
use crate::session::summarize;

impl DryRuns for Runtime {
    fn dry_run(
        &self,
        session: Option<&SessionId>,
        commands: Vec<Command>,
    ) -> BoxFuture<'_, Result<State, Error>> {
        let session = session.cloned();
        Box::pin(async move {
            let mut state = match session {
                Some(session) => State::clone(&*self.view(&session).await?),
                None => {
                    let deps = self.deps();
                    State::new(deps.clock.stamp().id(), Arc::clone(&deps.rules))
                }
            };
            for command in commands {
                self.deps().handle(&mut state, command, &self.deps().clock.stamp())?;
            }
            self.gather_context_now(&mut state).await?;
            Ok(state)
        })
    }

    fn preview_summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Result<State, String>, Error>> {
        let session = session.clone();
        Box::pin(async move {
            let (deps, mut state) = (self.deps(), State::clone(&*self.view(&session).await?));
            deps.handle(&mut state, Command::Compact, &deps.clock.stamp())?;
            let written = next(&state).into_iter().find_map(|effect| match effect {
                Effect::Summarize(upto) => {
                    Some(summarize(deps.clone(), prompt::summary_prompt(&state), upto))
                }
                _ => None,
            });
            let Some(written) = written else { return Ok(Ok(state)) };
            let command = written.await;
            if let Command::SummaryFailed { reason } = command {
                return Ok(Err(reason));
            }
            deps.handle(&mut state, command, &deps.clock.stamp())?;
            Ok(Ok(state))
        })
    }
}

impl Runtime {
    /// Describes the workspace, if the turn would do so before its model call.
    async fn gather_context_now(&self, state: &mut State) -> Result<(), Error> {
        let deps = self.deps();
        let survey = next(state).into_iter().find_map(|effect| match effect {
            Effect::GatherContext(turn) => Some(turn),
            _ => None,
        });
        let Some(turn) = survey else { return Ok(()) };
        let tokens = state.context_budget();
        let sections = deps.workspaces.gather_context(&state.workspace, tokens).await;
        deps.handle(state, Command::ContextGathered { turn, sections }, &deps.clock.stamp())?;
        Ok(())
    }
}
