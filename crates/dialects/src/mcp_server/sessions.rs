//! Handles decoded calls, and waits for turns.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use quintet_kernel::command::{Approve, Command, NewMessage, TurnStart};
use quintet_kernel::event::{DecidedBy, Event, NewSession, RememberScope, TurnOptions};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::Channel;
use quintet_kernel::port::{Error, Follower, Receipt, Sessions};
use quintet_kernel::{Cursor, Item, Refusal, SessionId, State, StepId, TurnId};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::decode::Request;
use super::encode::{RUNNING, report, session_entry, transcript, turn_state};

/// The most text of one result, in bytes; the rest follows after its cursor.
const TEXT_LIMIT: usize = 256 * 1024;
/// Time that `cancel` waits for the turn to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(10);
/// The most sessions of a list.
const SESSIONS_LIMIT: usize = 50;

/// The implementation of the tools.
#[derive(Clone)]
pub(super) struct SessionTools {
    pub(super) sessions: Arc<dyn Sessions>,
}

impl std::fmt::Debug for SessionTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionTools")
    }
}

/// The reason why a call failed.
#[derive(Debug)]
pub(super) enum Failure {
    /// The session does not exist.
    UnknownSession(String),
    /// Any other error, which is shown to the client's model.
    Refused(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(session) | Error::Refused(Refusal::NotBegun(session)) => {
                Self::UnknownSession(session.to_string())
            }
            error @ (Error::Refused(_)
            | Error::Ahead(..)
            | Error::ReadOnly
            | Error::Closing
            | Error::Storage(_)) => Self::Refused(error.to_string()),
        }
    }
}

impl From<&str> for Failure {
    fn from(why: &str) -> Self {
        Self::Refused(why.to_owned())
    }
}

/// Receives a line for each started tool call while a call waits.
pub(super) type OnProgress<'a> = &'a (dyn Fn(String) + Send + Sync);

/// The turn that a call waits for, and the position up to which the client has it.
struct Awaited {
    session: SessionId,
    turn: Option<TurnId>,
    from: Cursor,
    until: Instant,
}

impl SessionTools {
    /// Handles a call. `folder` is the client's working directory, if known. Fails with the reason.
    pub(super) async fn perform(
        &self,
        request: Request,
        folder: Option<PathBuf>,
        progress: OnProgress<'_>,
    ) -> Result<Value, Failure> {
        let awaited = match request {
            Request::Run { prompt, workspace, wait } => {
                let workspace =
                    workspace.or(folder).ok_or("workspace is needed: the folder to work in")?;
                let session = self.create(workspace).await?;
                self.submit_message(session, prompt, wait).await?
            }
            Request::Continue { session, prompt, wait } => {
                self.submit_message(session, prompt, wait).await?
            }
            Request::Status { session, cursor, wait } => {
                let state = self.view(&session).await?;
                let last = state.turns.last();
                let begin = || {
                    last.map_or(Cursor::START, |turn| Cursor::after(turn.begins.saturating_sub(1)))
                };
                let from = cursor.unwrap_or_else(begin);
                let turn = last.map(|turn| turn.id.clone());
                Awaited { session, turn, from, until: Instant::now() + wait }
            }
            Request::Answer { session, question, answer, content, reason, wait } => {
                let (turn, by, remember) = (None, DecidedBy::Client, RememberScope::Once);
                let approve = Approve { question, turn, answer, reason, by, remember, content };
                self.submit(&session, Command::Approve(approve)).await?;
                self.last_turn(session, wait).await?
            }
            Request::Cancel { session } => {
                let reason = Some("cancelled by an MCP client".to_owned());
                self.submit(&session, Command::Cancel { reason }).await?;
                self.last_turn(session, CANCEL_TIMEOUT).await?
            }
            Request::Sessions => return self.list().await,
        };
        self.wait(awaited, progress).await
    }

    /// The transcript of a session. Fails if the session cannot be read.
    pub(super) async fn transcript(&self, session: &SessionId) -> Result<String, Error> {
        Ok(transcript(&*self.sessions.view(session).await?))
    }

    async fn create(&self, workspace: PathBuf) -> Result<SessionId, Failure> {
        if !is_folder(&workspace).await {
            let why = format!("workspace is not a folder: {}", workspace.display());
            return Err(Failure::Refused(why));
        }
        let origin = NewSession { workspace, ..NewSession::default() };
        let Receipt { session, .. } = self.sessions.create(origin).await?;
        Ok(session)
    }

    async fn submit_message(
        &self,
        session: SessionId,
        prompt: String,
        wait: Duration,
    ) -> Result<Awaited, Failure> {
        let parts = vec![Part::Text(prompt)];
        let message = NewMessage::new(Role::User, parts, TurnStart::Now, TurnOptions::default());
        let receipt = self.submit(&session, Command::AddMessage(Box::new(message))).await?;
        let added = receipt.message().ok_or("the session added no message")?;
        let (turn, from) = (Some(added.turn.clone()), Cursor::after(added.seq));
        Ok(Awaited { session, turn, from, until: Instant::now() + wait })
    }

    /// Waits for the last turn of a session.
    async fn last_turn(&self, session: SessionId, wait: Duration) -> Result<Awaited, Failure> {
        let state = self.view(&session).await?;
        let turn = state.turns.last().map(|turn| turn.id.clone());
        let begin = state.turns.last().map_or(state.head, |turn| turn.begins.saturating_sub(1));
        Ok(Awaited { session, turn, from: Cursor::after(begin), until: Instant::now() + wait })
    }

    async fn list(&self) -> Result<Value, Failure> {
        let summaries = self.sessions.recent(None, SESSIONS_LIMIT).await?;
        let sessions: Vec<_> = summaries.iter().map(session_entry).collect();
        Ok(json!({ "sessions": sessions }))
    }

    async fn submit(&self, session: &SessionId, command: Command) -> Result<Receipt, Failure> {
        Ok(self.sessions.submit(session, command).await?)
    }

    async fn view(&self, session: &SessionId) -> Result<Arc<State>, Failure> {
        Ok(self.sessions.view(session).await?)
    }

    /// Reads a session's text until its turn ends or has a question, or the time is up.
    async fn wait(&self, awaited: Awaited, progress: OnProgress<'_>) -> Result<Value, Failure> {
        let Awaited { session, turn, from, until } = awaited;
        let mut follow = self.sessions.follow(&session, from).await?;
        let mut text = Text::default();
        let mut state = self.view(&session).await?;
        loop {
            let is_stopped = turn_state(&state, turn.as_ref()) != RUNNING;
            let is_behind = follow.position().seq < state.head;
            if text.is_full() || (is_stopped && !is_behind) {
                break;
            }
            let next = timeout_at(until, follow.next());
            let items = match next.await {
                Ok(items) => items?,
                // Existing text is returned even to a client that does not wait.
                Err(_) if is_behind => follow.next().await?,
                Err(_) => break,
            };
            let Some(items) = items else { break };
            let has_events = items.iter().any(|item| matches!(item, Item::Event(_)));
            items.into_iter().for_each(|item| text.add(item, progress));
            if has_events {
                state = self.view(&session).await?;
            }
        }
        catch_up(&mut *follow, &mut text, progress).await?;
        let report = report(&state, turn.as_ref(), text.text, follow.position());
        serde_json::to_value(report).map_err(|error| Failure::Refused(error.to_string()))
    }
}

/// Reads text in flight that has already arrived.
async fn catch_up(
    follow: &mut dyn Follower,
    text: &mut Text,
    progress: OnProgress<'_>,
) -> Result<(), Error> {
    while !text.is_full()
        && let Some(items) = follow.next().now_or_never()
    {
        let Some(items) = items?.filter(|items| !items.is_empty()) else { break };
        items.into_iter().for_each(|item| text.add(item, progress));
    }
    Ok(())
}

/// The text of a result.
#[derive(Default)]
struct Text {
    text: String,
    step: Option<StepId>,
}

impl Text {
    fn is_full(&self) -> bool {
        self.text.len() >= TEXT_LIMIT
    }

    fn add(&mut self, item: Item, progress: OnProgress<'_>) {
        match item {
            Item::Text { channel: Channel::Text, step, text, .. } => {
                if self.step.as_ref().is_some_and(|last| *last != step) && !self.text.is_empty() {
                    self.text.push_str("\n\n");
                }
                self.step = Some(step);
                self.text.push_str(&text);
            }
            Item::Event(record) => {
                if let Event::CallStarted { tool, .. } = &record.event {
                    progress(format!("running {tool}"));
                }
            }
            Item::Text { channel: Channel::Thought, .. } | Item::Progress { .. } => {}
        }
    }
}

async fn is_folder(path: &Path) -> bool {
    tokio::fs::metadata(path).await.is_ok_and(|found| found.is_dir())
}
