//! Submits prompts, and sends one response to each.

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
use super::requests::{Outcome, rpc_error};
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
    /// The undo command of a prompt was refused.
    Refused { session: SessionId, turn: TurnId, error: Error },
    /// A prompt of a server was filled in, for the request of this id.
    Filled { id: Id, session: SessionId, blocks: Result<Vec<Block>, Error> },
}

/// A server's prompt, as the user typed it.
struct TypedPrompt {
    name: String,
    arguments: String,
}

/// What a prompt waits for before its response is sent.
enum Awaited {
    Turn(TurnId),
    Compaction,
    Revert(TurnId),
    /// The filled-in text of a server's prompt.
    Fill,
}

impl OpenPrompt {
    /// The turn of this prompt; `None` if it runs a command.
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
        // A notification has no response.
        let id = id?.clone();
        let submitted = match SlashCommand::of(&blocks) {
            Some(SlashCommand::Compact) => self.compact(session).await,
            Some(SlashCommand::Undo) => self.undo(session).await,
            None => match self.server_prompt(session, &blocks) {
                Some(typed) => {
                    self.fill(id.clone(), session, typed, blocks);
                    Ok(Awaited::Fill)
                }
                None => self.submit_message(session, blocks).await.map(Awaited::Turn),
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

    /// The server's prompt that a message begins with, and the text after it.
    fn server_prompt(&self, session: &SessionId, blocks: &[Block]) -> Option<TypedPrompt> {
        let Block::Text(text) = blocks.first()? else { return None };
        let open = &self.sessions[self.position(session)?];
        let prompts = self.app.services.server_prompts.list(Some(session), &open.cwd);
        let (prompt, rest) = ServerPrompt::typed(&prompts, text)?;
        Some(TypedPrompt { name: prompt.name.clone(), arguments: rest.to_owned() })
    }

    /// Fills in a server's prompt in the background. The other blocks of the message come after it.
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

    /// Handles the result of a background task.
    pub(super) async fn finish_task(&mut self, done: Done) -> Messages {
        match done {
            Done::Refused { session, turn, error } => {
                let is_it = |open: &OpenPrompt| {
                    let awaits = &open.awaits;
                    open.session == session
                        && matches!(awaits, Awaited::Revert(own) if *own == turn)
                };
                self.respond_to_prompts(is_it, &Err(error))
            }
            Done::Filled { id, session, blocks } => {
                // The prompt may have been cancelled meanwhile.
                if !self.prompts.iter().any(|open| open.id == id) {
                    return Messages::new();
                }
                let submitted = match blocks {
                    Ok(blocks) => self.submit_message(&session, blocks).await,
                    Err(error) => Err(error),
                };
                match submitted {
                    Ok(turn) => {
                        let open = self.prompts.iter_mut().find(|open| open.id == id);
                        open.into_iter().for_each(|open| open.awaits = Awaited::Turn(turn.clone()));
                        Messages::new()
                    }
                    Err(error) => self.respond_to_prompts(|open| open.id == id, &Err(error)),
                }
            }
        }
    }

    async fn submit_message(
        &mut self,
        session: &SessionId,
        blocks: Vec<Block>,
    ) -> Result<TurnId, Error> {
        let which = self.require_open(session)?;
        let (mut parts, mut files) = (Vec::new(), Vec::new());
        for block in blocks {
            match block {
                Block::Text(text) => parts.push(Part::Text(text)),
                Block::Link { name, uri } => parts.push(Part::Text(format!("[@{name}]({uri})"))),
                Block::File { kind, name, mime, content } => {
                    self.check_input_kind(which, kind)?;
                    let size = content.len() as u64;
                    let blob = self.app.services.blobs.put(content).await;
                    let blob = blob.map_err(|error| rpc_error(&error.into()))?;
                    files.push((kind, NewAttachment { name, mime, blob, size }));
                }
            }
        }
        let models = self.app.models.usable().await;
        let open = &mut self.sessions[which];
        let options = open.encoder.settings.turn_options(&models);
        let moved = Some(open.cwd.clone()).filter(|cwd| cwd != open.encoder.workspace());
        let setup = Setup { workspace: moved, ..Setup::default() };
        let message = NewMessage {
            files,
            setup,
            ..NewMessage::new(Role::User, parts, TurnStart::Queued, options)
        };
        let submitted =
            self.app.services.sessions.submit(session, Command::AddMessage(Box::new(message)));
        let receipt = submitted.await.map_err(|error| rpc_error(&error))?;
        let missing = || Error::new(jsonrpc::INTERNAL_ERROR, "the session added no message");
        let turn = receipt.turn().ok_or_else(missing)?.clone();
        self.sessions[which].encoder.mark_own_turn(&turn);
        Ok(turn)
    }

    /// Fails if the session's model accepts no input of this kind. Text files are sent to every model.
    fn check_input_kind(&self, which: usize, kind: MediaKind) -> Result<(), Error> {
        let model = &self.sessions[which].encoder.settings.model;
        let profile = self.app.services.models.profile(model);
        let is_accepted = profile.is_none_or(|profile| profile.inputs.contains(&kind));
        if kind == MediaKind::File || is_accepted {
            return Ok(());
        }
        let message = format!("model {model} accepts no {} blocks", kind.name());
        Err(Error::new(jsonrpc::INVALID_PARAMS, message))
    }

    async fn compact(&mut self, session: &SessionId) -> Result<Awaited, Error> {
        self.require_open(session)?;
        let submitted = self.app.services.sessions.submit(session, Command::Compact).await;
        submitted.map(|_| Awaited::Compaction).map_err(|error| rpc_error(&error))
    }

    async fn undo(&mut self, session: &SessionId) -> Result<Awaited, Error> {
        self.require_open(session)?;
        let sessions = self.app.services.sessions.clone();
        let state = sessions.view(session).await.map_err(|error| rpc_error(&error))?;
        let changed =
            state.turns.iter().rev().find(|turn| !turn.changes.is_empty() && !turn.reverted);
        let Some(turn) = changed.map(|turn| turn.id.clone()) else {
            return Err(Error::new(jsonrpc::INVALID_PARAMS, "there are no changes to undo"));
        };
        // The response is sent when the event of the revert arrives.
        let (session, command) = (session.clone(), Command::Revert { turn: turn.clone() });
        let reverted = turn.clone();
        self.tasks.spawn(async move {
            let error = sessions.submit(&session, command).await.err()?;
            Some(Done::Refused { session, turn: reverted, error: rpc_error(&error) })
        });
        Ok(Awaited::Revert(turn))
    }

    /// Cancels the editor's prompts in a session, or only this one. Returns the responses to prompts that
    /// run a command; the others are answered when their turns end.
    pub(super) async fn cancel(&mut self, session: &SessionId, prompt: Option<&Id>) -> Messages {
        let is_chosen =
            |open: &OpenPrompt| open.session == *session && prompt.is_none_or(|id| open.id == *id);
        // Newest first, so that no queued turn starts because the one before it ended.
        let chosen = self.prompts.iter().rev().filter(|open| is_chosen(open));
        let mut turns: Vec<TurnId> = chosen.filter_map(OpenPrompt::turn).cloned().collect();
        let sessions = self.app.services.sessions.clone();
        // A turn of another client is cancelled, too, because the user sees it here. The id is given, so
        // that a turn that starts later is not affected.
        if prompt.is_none()
            && let Ok(state) = sessions.view(session).await
        {
            let running = state.open.as_ref().map(|open| open.id.clone());
            turns.extend(running.filter(|running| !turns.contains(running)));
        }
        let of = session.clone();
        self.tasks.spawn(async move {
            for turn in turns {
                // A turn that has ended cannot be cancelled; its response is on its way.
                let command = Command::CancelTurn { turn, reason: None };
                if let Err(error) = sessions.submit(&of, command).await {
                    tracing::debug!(session = %of, %error, "nothing to cancel");
                }
            }
            None
        });
        let is_command = |open: &OpenPrompt| open.turn().is_none() && is_chosen(open);
        self.respond_to_prompts(is_command, &Ok(prompt_result("cancelled")))
    }

    /// The session of the prompt with this request id.
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
        self.respond_to_prompts(is_it, &outcome.map(prompt_result))
    }

    /// Responds to a prompt that requested a compaction.
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

    /// Responds to a prompt that requested to undo the changes of a turn.
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

    /// The result of a command as text, and the responses to its prompts; nothing if no prompt waits for
    /// it.
    fn answer_command(
        &mut self,
        is_it: impl Fn(&OpenPrompt) -> bool,
        session: &SessionId,
        text: &str,
    ) -> Messages {
        let answers = self.respond_to_prompts(is_it, &Ok(prompt_result("end_turn")));
        if answers.is_empty() {
            return answers;
        }
        let update = json!({ "sessionUpdate": "agent_message_chunk", "content": wire::text(text) });
        [wire::update(session, &update)].into_iter().chain(answers).collect()
    }

    /// Responds to all matching prompts and removes them.
    pub(super) fn respond_to_prompts(
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

pub(super) fn prompt_result(reason: &'static str) -> Value {
    json!({ "stopReason": reason })
}
