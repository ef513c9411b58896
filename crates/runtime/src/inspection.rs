//! Inspection of sessions: changes of turns, past prompts, dry runs.

use quintet_kernel::change::FileChange;
use quintet_kernel::command::Command;
use quintet_kernel::event::Seq;
use quintet_kernel::port::{BoxFuture, ChangedFile, Changeset, Error, SessionInspection};
use quintet_kernel::{SessionId, State, TurnId};

use crate::changes::with_content;
use crate::runtime::Runtime;

impl SessionInspection for Runtime {
    fn turn_changes(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Changeset, Error>> {
        let (session, turn) = (session.clone(), turn.clone());
        Box::pin(async move { self.changes_of(&session, &turn).await })
    }

    fn revert_conflicts(
        &self,
        session: &SessionId,
        turn: &TurnId,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        let (session, turn) = (session.clone(), turn.clone());
        Box::pin(async move { self.conflicts_of(&session, &turn).await })
    }

    fn with_contents(
        &self,
        changes: Vec<FileChange>,
    ) -> BoxFuture<'_, Result<Vec<ChangedFile>, Error>> {
        Box::pin(async move { Ok(with_content(self.deps(), &changes).await?) })
    }

    fn session_at<'a>(
        &'a self,
        session: &'a SessionId,
        event: Seq,
    ) -> BoxFuture<'a, Result<Option<State>, Error>> {
        Box::pin(self.state_after(session, event))
    }

    fn dry_run(
        &self,
        session: Option<&SessionId>,
        commands: Vec<Command>,
    ) -> BoxFuture<'_, Result<State, Error>> {
        Box::pin(self.state_after_commands(session.cloned(), commands))
    }

    fn preview_summary(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'_, Result<Result<State, String>, Error>> {
        Box::pin(self.state_after_compaction(session.clone()))
    }
}
