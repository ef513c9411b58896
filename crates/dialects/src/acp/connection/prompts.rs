//! Prompts: how they are carried out, and their one response.

use std::sync::Arc;

use quintet_kernel::command::{Command, NewAttachment, NewMessage, TurnStart};
use quintet_kernel::event::Setup;
use quintet_kernel::message::{MediaKind, Part, Role};
use quintet_kernel::port::{PromptContent, ServerPrompt};
use quintet_kernel::{SessionId, TurnId};
use serde_json::{Value, json};

use super::super::commands::SlashCommand;
use super::super::decode::Block;
use super::super::wire;
use super::requests::{Outcome, refused};
use super::{Connection, Messages};
use crate::jsonrpc::{self, Error, Id};

/// A prompt that is not answered yet.
pub(super) struct OpenPrompt {
    pub(super) id: Id,
    pub(super) session: SessionId,
    awaits: Awaited,
}

/// The result of background work for a prompt.
pub(super) enum Done {
    /// A command was refused.
    Refused { session: SessionId, turn: TurnId, error: Error },
    /// A prompt of a server was filled in, for the request of this id.
    Filled { id: Id, session: SessionId, blocks: Result<Vec<Block>, Error> },
}

/// A prompt of a server, as a person typed it.
struct TypedPrompt {
    name: String,
    arguments: String,
}

/// What answers a prompt.
enum Awaited {
    Turn(TurnId),
    Compaction,
    Revert(TurnId),
    /// The text of a server's prompt.
    Fill,
}

impl OpenPrompt {
    /// The turn that answers it; `None` if a command does.
    fn turn(&self) -> Option<&TurnId> {
        match &self.awaits {
            Awaited::Turn(turn) => Some(turn),
            Awaited::Compaction | Awaited::Revert(_) | Awaited::Fill => None,
        }
    }
}

impl Connection {
    /// Submits a prompt. Unless it is refused, the response comes when its turn ends.
    pub(super) async fn prompt(
        &mut self,
        id: Option<&Id>,
        session: &SessionId,
        blocks: Vec<Block>,
    ) -> Option<Outcome> {
        // A notification could not be answered.
        let id = id?.clone();
        let submitted = match SlashCommand::of(&blocks) {
            Some(SlashCommand::Compact) => self.compact(session).await,
            Some(SlashCommand::Undo) => self.undo(session).await,
            None => match self.server_prompt(session, &blocks) {
                Some(typed) => {
                    self.fill(id.clone(), session, typed, blocks);
                    Ok(Awaited::Fill)
                }
                None => self.say(session, blocks).await.map(Awaited::Turn),
            },
        };
        match submitted {
            Ok(awaits) => {
                self.prompts.push(OpenPrompt { id, session: session.clone(), awaits });
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    /// The prompt of a server that a prompt begins with, and what is typed after it.
    fn server_prompt(&self, session: &SessionId, blocks: &[Block]) -> Option<TypedPrompt> {
        let Block::Text(text) = blocks.first()? else { return None };
        let open = &self.sessions[self.position(session)?];
        let prompts = self.app.services.server_prompts.list(Some(session), &open.cwd);
        let (prompt, rest) = ServerPrompt::typed(&prompts, text)?;
        Some(TypedPrompt { name: prompt.name.clone(), arguments: rest.to_owned() })
    }

    /// Has a server's prompt filled in, in the background; what else there was comes after it.
    fn fill(&mut self, id: Id, session: &SessionId, typed: TypedPrompt, mut blocks: Vec<Block>) {
        let Some(which) = self.position(session) else { return };
        let (session, cwd) = (session.clone(), self.sessions[which].cwd.clone());
        let prompts = Arc::clone(&self.app.services.server_prompts);
        self.tasks.spawn(async move {
            let TypedPrompt { name, arguments } = typed;
            let filled = prompts.fill(Some(&session), &cwd, &name, &arguments).await;
            let filled = filled.map(|contents| {
                let rest = blocks.split_off(1);
                contents.into_iter().map(block).chain(rest).collect()
            });
            let blocks = filled.map_err(|why| Error::new(jsonrpc::INVALID_PARAMS, why));
            Some(Done::Filled { id, session, blocks })
        });
    }

    /// Goes on with what a task did for a prompt.
    pub(super) async fn done(&mut self, done: Done) -> Messages {
        match done {
            Done::Refused { session, turn, error } => {
                let is_it = |open: &OpenPrompt| {
                    let awaits = &open.awaits;
                    open.session == session
                        && matches!(awaits, Awaited::Revert(own) if *own == turn)
                };
                self.abandon_prompts(is_it, &Err(error))
            }
            Done::Filled { id, session, blocks } => {
                // The prompt may have been cancelled meanwhile.
                if !self.prompts.iter().any(|open| open.id == id) {
                    return Messages::new();
                }
                let said = match blocks {
                    Ok(blocks) => self.say(&session, blocks).await,
                    Err(error) => Err(error),
                };
                match said {
                    Ok(turn) => {
                        let open = self.prompts.iter_mut().find(|open| open.id == id);
                        open.into_iter().for_each(|open| open.awaits = Awaited::Turn(turn.clone()));
                        Messages::new()
                    }
                    Err(error) => self.abandon_prompts(|open| open.id == id, &Err(error)),
                }
            }
        }
    }

    async fn say(&mut self, session: &SessionId, blocks: Vec<Block>) -> Result<TurnId, Error> {
        let which = self.opened(session)?;
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for block in blocks {
            match block {
                Block::Text(text) => parts.push(Part::Text(text)),
                Block::Link { name, uri } => parts.push(Part::Text(format!("[@{name}]({uri})"))),
                Block::File { kind, name, mime, content } => {
                    self.takes(which, kind)?;
                    let size = content.len() as u64;
                    let blob = self.app.services.blobs.put(content).await;
                    let blob = blob.map_err(|error| refused(&error.into()))?;
                    files.push((kind, NewAttachment { name, mime, blob, size }));
                }
            }
        }
        let models = self.app.models.usable().await;
        let open = &mut self.sessions[which];
        let options = open.encoder.settings.turn_options(&models);
        let moved = Some(open.cwd.clone()).filter(|cwd| cwd != open.encoder.workspace());
        let setup = Setup { workspace: moved, ..Setup::default() };
        let say = NewMessage {
            files,
            setup,
            ..NewMessage::new(Role::User, parts, TurnStart::Queued, options)
        };
        let submitted =
            self.app.services.sessions.submit(session, Command::AddMessage(Box::new(say)));
        let receipt = submitted.await.map_err(|error| refused(&error))?;
        let lost = || Error::new(jsonrpc::INTERNAL_ERROR, "the session added no message");
        let turn = receipt.turn().ok_or_else(lost)?.clone();
        self.sessions[which].encoder.own_turn(&turn);
        Ok(turn)
    }

    /// Fails if the model of a session takes no such files. Text reaches every model.
    fn takes(&self, which: usize, kind: MediaKind) -> Result<(), Error> {
        let model = &self.sessions[which].encoder.settings.model;
        let profile = self.app.services.models.profile(model);
        let takes = profile.is_none_or(|profile| profile.inputs.contains(&kind));
        if kind == MediaKind::File || takes {
            return Ok(());
        }
        let message = format!("model {model} takes no {} blocks", kind.name());
        Err(Error::new(jsonrpc::INVALID_PARAMS, message))
    }

    async fn compact(&mut self, session: &SessionId) -> Result<Awaited, Error> {
        self.opened(session)?;
        let submitted = self.app.services.sessions.submit(session, Command::Compact).await;
        submitted.map(|_| Awaited::Compaction).map_err(|error| refused(&error))
    }

    async fn undo(&mut self, session: &SessionId) -> Result<Awaited, Error> {
        self.opened(session)?;
        let sessions = self.app.services.sessions.clone();
        let state = sessions.view(session).await.map_err(|error| refused(&error))?;
        let changed =
            state.turns.iter().rev().find(|turn| !turn.changes.is_empty() && !turn.reverted);
        let Some(turn) = changed.map(|turn| turn.id.clone()) else {
            return Err(Error::new(jsonrpc::INVALID_PARAMS, "there are no changes to undo"));
        };
        // Responded to when it is done, which is also an event.
        let (session, command) = (session.clone(), Command::Revert { turn: turn.clone() });
        let reverted = turn.clone();
        self.tasks.spawn(async move {
            let error = sessions.submit(&session, command).await.err()?;
            Some(Done::Refused { session, turn: reverted, error: refused(&error) })
        });
        Ok(Awaited::Revert(turn))
    }

    /// Cancels the editor's prompts in a session, or only this one. Returns the responses to work that cannot
    /// be stopped; turns are responded to when they end.
    pub(super) async fn cancel(&mut self, session: &SessionId, prompt: Option<&Id>) -> Messages {
        let is_chosen =
            |open: &OpenPrompt| open.session == *session && prompt.is_none_or(|id| open.id == *id);
        // The newest first, so that none begins because the one before it ended.
        let chosen = self.prompts.iter().rev().filter(|open| is_chosen(open));
        let mut turns: Vec<TurnId> = chosen.filter_map(OpenPrompt::turn).cloned().collect();
        let sessions = self.app.services.sessions.clone();
        // A turn of another client is cancelled, too, because the user sees it here. It is named, so that a
        // turn that begins later is not affected.
        if prompt.is_none()
            && let Ok(state) = sessions.view(session).await
        {
            let running = state.open.as_ref().map(|open| open.id.clone());
            turns.extend(running.filter(|running| !turns.contains(running)));
        }
        let of = session.clone();
        self.tasks.spawn(async move {
            for turn in turns {
                // An ended turn cannot be cancelled, and its response is on its way.
                let command = Command::CancelTurn { turn, reason: None };
                if let Err(error) = sessions.submit(&of, command).await {
                    tracing::debug!(session = %of, %error, "nothing to cancel");
                }
            }
            None
        });
        let is_command = |open: &OpenPrompt| open.turn().is_none() && is_chosen(open);
        self.abandon_prompts(is_command, &Ok(stopped("cancelled")))
    }

    /// The prompt that a request of this id began.
    pub(super) fn prompt_session(&self, id: &Id) -> Option<SessionId> {
        self.prompts.iter().find(|open| open.id == *id).map(|open| open.session.clone())
    }

    /// Responds to the prompt whose turn ended.
    pub(super) fn turn_ended(
        &mut self,
        session: &SessionId,
        turn: &TurnId,
        outcome: Result<&'static str, Error>,
    ) -> Messages {
        let is_it = |open: &OpenPrompt| {
            open.session == *session && matches!(&open.awaits, Awaited::Turn(own) if own == turn)
        };
        self.abandon_prompts(is_it, &outcome.map(stopped))
    }

    /// Responds to a prompt that requested a summary.
    pub(super) fn compacted(
        &mut self,
        session: &SessionId,
        result: Result<(), String>,
    ) -> Messages {
        let is_it = |open: &OpenPrompt| {
            open.session == *session && matches!(open.awaits, Awaited::Compaction)
        };
        let text = match result {
            Ok(()) => "The conversation was summarized.".to_owned(),
            Err(reason) => format!("The conversation could not be summarized: {reason}"),
        };
        self.answer_command(is_it, session, &text)
    }

    /// Answers a prompt that asked to undo the changes of a turn.
    pub(super) fn reverted(
        &mut self,
        session: &SessionId,
        turn: &TurnId,
        result: Result<Vec<String>, String>,
    ) -> Messages {
        let is_it = |open: &OpenPrompt| {
            open.session == *session && matches!(&open.awaits, Awaited::Revert(own) if own == turn)
        };
        let text = match result {
            Ok(files) => format!("Undone: {}", files.join(", ")),
            Err(reason) => format!("The changes could not be undone: {reason}"),
        };
        self.answer_command(is_it, session, &text)
    }

    /// The result of a command as text, and the response to its prompt; `None` if no request waits.
    fn answer_command(
        &mut self,
        is_it: impl Fn(&OpenPrompt) -> bool,
        session: &SessionId,
        text: &str,
    ) -> Messages {
        let answers = self.abandon_prompts(is_it, &Ok(stopped("end_turn")));
        if answers.is_empty() {
            return answers;
        }
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": wire::text(text) });
        [wire::update(session, &update)].into_iter().chain(answers).collect()
    }

    /// Answers all prompts of which this is true.
    pub(super) fn abandon_prompts(
        &mut self,
        chosen: impl Fn(&OpenPrompt) -> bool,
        outcome: &Result<Value, Error>,
    ) -> Messages {
        let answers = self.prompts.extract_if(.., |open| chosen(open));
        answers.map(|open| jsonrpc::response(&open.id, outcome)).collect()
    }
}

fn block(content: PromptContent) -> Block {
    match content {
        PromptContent::Text(text) => Block::Text(text),
        PromptContent::File { kind, name, mime, content } => {
            Block::File { kind, name, mime, content }
        }
    }
}

pub(super) fn stopped(reason: &'static str) -> Value {
    json!({ "stopReason": reason })
}
