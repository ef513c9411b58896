//! Dry runs: the same decisions on a state that is then discarded.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::{Error, Sessions as _};
use quintet_kernel::session::next;
use quintet_kernel::{Effect, SessionId, State, prompt};

use crate::runtime::Runtime;
use crate::session::summarize;

impl Runtime {
    /// The state after commands that are decided and not executed.
    pub(crate) async fn state_after_commands(
        &self,
        session: Option<SessionId>,
        commands: Vec<Command>,
    ) -> Result<State, Error> {
        let deps = self.deps();
        let mut state = match session {
            Some(session) => State::clone(&*self.view(&session).await?),
            None => State::new(deps.clock.stamp().id(), Arc::clone(&deps.rules)),
        };
        for command in commands {
            deps.handle(&mut state, command, &deps.clock.stamp())?;
        }
        self.gather_context_now(&mut state).await?;
        Ok(state)
    }

    /// The state after a compaction that is not stored.
    pub(crate) async fn state_after_compaction(
        &self,
        session: SessionId,
    ) -> Result<Result<State, String>, Error> {
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
    }

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
