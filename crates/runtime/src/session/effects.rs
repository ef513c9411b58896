//! The effects that run for a session as tasks: tool calls, gathering context, reverts, summaries
//! and reviews. The session itself calls models and waits for times.
//!
//! Each effect ends with one command for the session.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use quintet_kernel::command::Command;
use quintet_kernel::model::{Channel, Chunk, Failure, Prompt, Usage};
use quintet_kernel::port::{BoxFuture, RevertMode};
use quintet_kernel::session::{Effect, PendingMemory};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{CallId, MessageId, State, TurnId, prompt};
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::changes::revert_turn;
use crate::deps::RuntimeDeps;
use crate::runtime::{Runtime, Shared};
use crate::session::model_call::{OUTPUT_LIMIT, load_media, too_much_output, unreadable};
use crate::session::tool_calls::{assess_call, run_call, unknown_assessment};
use crate::subagents;
use crate::tail::Tail;

/// The running effects of a session.
#[derive(Debug, Default)]
pub(super) struct EffectTasks {
    set: JoinSet<Command>,
    running: HashMap<Effect, Running>,
    tasks: HashMap<Id, Effect>,
}

#[derive(Debug)]
struct Running {
    abort: AbortHandle,
    cancel: CancellationToken,
}

impl EffectTasks {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn runs(&self, effect: &Effect) -> bool {
        self.running.contains_key(effect)
    }

    /// True if a tool runs, or a model that summarizes or reviews.
    pub(super) fn run_work(&self) -> bool {
        self.running.keys().any(|effect| match effect {
            Effect::RunCall(_) | Effect::ReviewCall(_) | Effect::Summarize(_) => true,
            Effect::CallModel(_)
            | Effect::GatherContext(_)
            | Effect::AssessCall(_)
            | Effect::RevertTurn(_)
            | Effect::SaveMemory(_)
            | Effect::CancelSubagent(_)
            | Effect::WakeAt(_) => false,
        })
    }

    /// Stops effects that are no longer wanted. A running call is cancelled and reports its
    /// end.
    pub(super) fn retain(&mut self, wanted: impl Fn(&Effect) -> bool) {
        let unwanted: Vec<Effect> =
            self.running.keys().filter(|effect| !wanted(effect)).cloned().collect();
        for effect in unwanted {
            match &effect {
                Effect::RunCall(_) => self.running[&effect].cancel.cancel(),
                Effect::CallModel(_)
                | Effect::GatherContext(_)
                | Effect::AssessCall(_)
                | Effect::ReviewCall(_)
                | Effect::RevertTurn(_)
                | Effect::Summarize(_)
                | Effect::SaveMemory(_)
                | Effect::CancelSubagent(_)
                | Effect::WakeAt(_) => {
                    if let Some(running) = self.running.remove(&effect) {
                        running.abort.abort();
                    }
                }
            }
        }
    }

    /// Starts an effect. One that needs no waiting completes at once and returns its
    /// command.
    pub(super) fn begin(
        &mut self,
        effect: Effect,
        state: &State,
        shared: &Arc<Shared>,
        tail: &Arc<Tail>,
    ) -> Option<Command> {
        let deps = &shared.deps;
        let cancel = CancellationToken::new();
        let mut work: BoxFuture<'static, Command> = match &effect {
            Effect::CallModel(_) | Effect::WakeAt(_) => return None,
            Effect::GatherContext(turn) => gather_context(deps, state, turn),
            Effect::AssessCall(call) => assess_call(deps, state, call),
            Effect::ReviewCall(call) => review_call(deps, state, call),
            Effect::RevertTurn(turn) => revert_effect(deps, state, turn),
            Effect::RunCall(call) => run_call(shared, state, call, tail, &cancel),
            Effect::Summarize(upto) => {
                summarize(deps.clone(), prompt::summary_prompt(state), upto.clone())
            }
            Effect::SaveMemory(upto) => save_memory(deps, state, upto),
            Effect::CancelSubagent(session) => {
                subagents::cancel(Runtime::of(Arc::clone(shared)), state, session)
            }
        };
        if matches!(effect, Effect::GatherContext(_))
            && let Some(command) = poll_once(&mut work)
        {
            return Some(command);
        }
        let abort = self.set.spawn(work);
        self.tasks.insert(abort.id(), effect.clone());
        self.running.insert(effect, Running { abort, cancel });
        None
    }

    /// The result of the next effect that ends; `None` if none runs.
    pub(super) async fn done(&mut self) -> Option<Command> {
        loop {
            let (id, command) = match self.set.join_next_with_id().await? {
                Ok((id, command)) => (id, Some(command)),
                Err(error) => (error.id(), None),
            };
            let Some(effect) = self.tasks.remove(&id) else {
                continue;
            };
            let current = self.running.get(&effect).is_some_and(|running| running.abort.id() == id);
            if !current {
                continue;
            }
            self.running.remove(&effect);
            if let Some(command) = command.or_else(|| panic_outcome(effect)) {
                return Some(command);
            }
        }
    }
}

/// Polls an effect once; a task of its own would cost more than one that completes at once.
fn poll_once(work: &mut BoxFuture<'static, Command>) -> Option<Command> {
    // If it is pending, the task that continues it registers its own waker.
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(command) => Some(command),
        Poll::Pending => None,
    }
}

/// The result of an effect that panicked: a failed call, not a dead session.
fn panic_outcome(effect: Effect) -> Option<Command> {
    let why = "internal error";
    match effect {
        Effect::RunCall(call) => {
            Some(Command::CallFinished { call, outcome: Outcome::failure(why) })
        }
        Effect::GatherContext(turn) => {
            Some(Command::ContextGathered { turn, sections: Vec::new() })
        }
        Effect::ReviewCall(call) => Some(unreviewed(call, why.into())),
        Effect::RevertTurn(turn) => Some(Command::RevertFinished { turn, result: Err(why.into()) }),
        Effect::AssessCall(call) => {
            Some(Command::Assessed { call, assessment: unknown_assessment(why).into() })
        }
        Effect::Summarize(_) => Some(Command::SummaryFailed { reason: why.into() }),
        Effect::SaveMemory(upto) => Some(Command::MemorySaved { upto, result: Err(why.into()) }),
        Effect::CallModel(_) | Effect::CancelSubagent(_) | Effect::WakeAt(_) => None,
    }
}

fn gather_context(deps: &RuntimeDeps, state: &State, turn: &TurnId) -> BoxFuture<'static, Command> {
    let (workspaces, workspace) = (Arc::clone(&deps.workspaces), state.workspace.clone());
    let tokens = state.context_budget();
    let turn = turn.clone();
    Box::pin(async move {
        let sections = workspaces.gather_context(&workspace, tokens).await;
        Command::ContextGathered { turn, sections }
    })
}

fn revert_effect(deps: &RuntimeDeps, state: &State, turn: &TurnId) -> BoxFuture<'static, Command> {
    let (deps, id, turn) = (deps.clone(), turn.clone(), state.turn(turn).cloned());
    Box::pin(async move {
        let result = match &turn {
            Some(turn) => revert_turn(&deps, turn, RevertMode::Apply).await,
            None => Err(format!("there is no turn {id}")),
        };
        Command::RevertFinished { turn: id, result }
    })
}

fn review_call(deps: &RuntimeDeps, state: &State, call: &CallId) -> BoxFuture<'static, Command> {
    let (deps, prompt, call) = (deps.clone(), prompt::review_prompt(state, call), call.clone());
    Box::pin(async move {
        let Some(prompt) = prompt else {
            return unreviewed(call, "there is nothing to read".into());
        };
        match collect_text(&deps, prompt).await {
            Ok((words, usage)) => {
                let (answer, comment) = prompt::parse_review(&words);
                Command::Reviewed { call, answer, comment, usage }
            }
            Err(failure) => unreviewed(call, failure.message),
        }
    })
}

fn unreviewed(call: CallId, comment: String) -> Command {
    Command::Reviewed { call, answer: None, comment, usage: Usage::default() }
}

/// Lets a model write a summary of the history up to a message.
pub(crate) fn summarize(
    deps: RuntimeDeps,
    prompt: Prompt,
    upto: MessageId,
) -> BoxFuture<'static, Command> {
    Box::pin(async move {
        match collect_text(&deps, prompt).await {
            Ok((summary, usage)) if !summary.trim().is_empty() => {
                Command::SummaryWritten { upto, summary, usage }
            }
            Ok(_) => Command::SummaryFailed { reason: "the model wrote nothing".into() },
            Err(failure) => Command::SummaryFailed { reason: failure.message },
        }
    })
}

/// Writes a summary's facts to memory; safe to repeat.
fn save_memory(deps: &RuntimeDeps, state: &State, upto: &MessageId) -> BoxFuture<'static, Command> {
    let entry = state.saving.iter().find(|saving| saving.upto == *upto).map(PendingMemory::entry);
    let (memory, workspace, upto) = (deps.memory.clone(), state.workspace.clone(), upto.clone());
    Box::pin(async move {
        let result = match (memory, entry) {
            (Some(memory), Some(entry)) => match memory.write(&workspace, entry).await {
                Ok(written) => Ok(written.path),
                Err(error) => Err(error.to_string()),
            },
            _ => Err("memory is off".into()),
        };
        Command::MemorySaved { upto, result }
    })
}

/// The whole text of a model's response.
async fn collect_text(deps: &RuntimeDeps, prompt: Prompt) -> Result<(String, Usage), Failure> {
    let prompt = load_media(prompt, &*deps.blobs).await.map_err(|error| unreadable(&error))?;
    let mut stream = deps.models.stream(prompt);
    let (mut text, mut written) = (String::new(), 0);
    loop {
        for chunk in stream.next().await? {
            match chunk {
                Chunk::Output(channel, more) => {
                    written += more.len() as u64;
                    if written > OUTPUT_LIMIT {
                        return Err(too_much_output());
                    }
                    match channel {
                        Channel::Text => text.push_str(&more),
                        Channel::Thought => {}
                    }
                }
                Chunk::Retrying { .. } => {}
                Chunk::Finished(answer) => return Ok((text, answer.usage)),
            }
        }
    }
}
