//! What would become of commands: the same decisions, on a state that nobody keeps.

use std::sync::Arc;

use quintet_kernel::command::Command;
use quintet_kernel::port::{BoxFuture, Error, Rehearsals, Sessions as _};
use quintet_kernel::session::next;
use quintet_kernel::{Effect, SessionId, State, prompt};

use crate::runtime::Runtime;
use crate::session::summarize;

impl Rehearsals for Runtime {
    fn rehearse(
        &self,
        session: Option<&SessionId>,
        commands: Vec<Command>,
    ) -> BoxFuture<'_, Result<State, Error>> {
        let session = session.cloned();
        Box::pin(async move {
            let mut state = match session {
                Some(session) => State::clone(&*self.view(&session).await?),
                None => {
                    let parts = self.parts();
                    State::new(parts.stamps.stamp().id(), Arc::clone(&parts.rules))
                }
            };
            for command in commands {
                self.parts().handle(&mut state, command, &self.parts().stamps.stamp())?;
            }
            self.look_around(&mut state).await?;
            Ok(state)
        })
    }

    fn summarize(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Result<State, String>, Error>> {
        let session = session.clone();
        Box::pin(async move {
            let (parts, mut state) = (self.parts(), State::clone(&*self.view(&session).await?));
            parts.handle(&mut state, Command::Compact, &parts.stamps.stamp())?;
            let written = next(&state).into_iter().find_map(|effect| match effect {
                Effect::Summarize(upto) => {
                    Some(summarize(parts.clone(), prompt::summarize(&state), upto))
                }
                _ => None,
            });
            let Some(written) = written else { return Ok(Ok(state)) };
            let command = written.await;
            if let Command::NotSummarized { reason } = command {
                return Ok(Err(reason));
            }
            parts.handle(&mut state, command, &parts.stamps.stamp())?;
            Ok(Ok(state))
        })
    }
}

impl Runtime {
    /// Looks at the workspace, if a turn would have that done before it asks a model.
    async fn look_around(&self, state: &mut State) -> Result<(), Error> {
        let parts = self.parts();
        let survey = next(state).into_iter().find_map(|effect| match effect {
            Effect::Survey(turn) => Some(turn),
            _ => None,
        });
        let Some(turn) = survey else { return Ok(()) };
        let tokens = state.context_budget();
        let sections = parts.workspaces.survey(&state.workspace, tokens).await;
        parts.handle(state, Command::Surveyed { turn, sections }, &parts.stamps.stamp())?;
        Ok(())
    }
}
