//! Everything else that runs for a session: looking at its workspace and its calls, running them,
//! undoing them, summaries, reviews, alarms.
//!
//! Each piece of work ends with one command for the session.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::model::{Channel, Chunk, Failure, Prompt, Usage};
use quintet_kernel::pictures::{LOOK, pictures};
use quintet_kernel::port::{BoxFuture, Cancel, Desk, Invocation, Progress, UndoRun};
use quintet_kernel::session::{Effect, Saving};
use quintet_kernel::tool::{Assessment, Ending, Outcome, Risk, Subject};
use quintet_kernel::{CallId, MessageId, State, Time, TurnId, prompt};
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::changes::undo;
use crate::parts::Parts;
use crate::runtime::{Runtime, Shared};
use crate::session::asking::{OUTPUT_LIMIT, fill, too_much_output, unreadable};
use crate::session::keep::keep;
use crate::subagents;
use crate::tail::Tail;

/// What runs for a session.
#[derive(Debug, Default)]
pub(super) struct Work {
    set: JoinSet<Command>,
    running: HashMap<Effect, Running>,
    tasks: HashMap<Id, Effect>,
}

#[derive(Debug)]
struct Running {
    abort: AbortHandle,
    cancel: CancellationToken,
}

impl Work {
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    pub(super) fn runs(&self, effect: &Effect) -> bool {
        self.running.contains_key(effect)
    }

    /// Ends what is not wanted any more. A running call is asked to stop and reports when it has.
    pub(super) fn keep(&mut self, wanted: impl Fn(&Effect) -> bool) {
        let unwanted: Vec<Effect> =
            self.running.keys().filter(|effect| !wanted(effect)).cloned().collect();
        for effect in unwanted {
            match &effect {
                Effect::Run(_) => self.running[&effect].cancel.cancel(),
                Effect::CallModel(_)
                | Effect::Survey(_)
                | Effect::Assess(_)
                | Effect::Review(_)
                | Effect::Revert(_)
                | Effect::Summarize(_)
                | Effect::Save(_)
                | Effect::CancelSubagent(_)
                | Effect::WakeAt(_) => {
                    if let Some(running) = self.running.remove(&effect) {
                        running.abort.abort();
                    }
                }
            }
        }
    }

    /// Begins a piece of work. What needs no waiting is over at once, and gives its command.
    pub(super) fn begin(
        &mut self,
        effect: Effect,
        state: &State,
        shared: &Arc<Shared>,
        tail: &Arc<Tail>,
    ) -> Option<Command> {
        let parts = &shared.parts;
        let cancel = CancellationToken::new();
        let mut work: BoxFuture<'static, Command> = match &effect {
            Effect::CallModel(_) => return None,
            Effect::Survey(turn) => survey(parts, state, turn),
            Effect::Assess(call) => assess(parts, state, call),
            Effect::Review(call) => review(parts, state, call),
            Effect::Revert(turn) => revert(parts, state, turn),
            Effect::Run(call) => run(parts, state, call, tail, &cancel),
            Effect::Summarize(upto) => {
                summarize(parts.clone(), prompt::summarize(state), upto.clone())
            }
            Effect::Save(upto) => save(parts, state, upto),
            Effect::CancelSubagent(session) => {
                subagents::cancel(Runtime::of(Arc::clone(shared)), state, session)
            }
            Effect::WakeAt(time) => wake(time.since(parts.stamps.now())),
        };
        if matches!(effect, Effect::Survey(_))
            && let Some(command) = at_once(&mut work)
        {
            return Some(command);
        }
        let abort = self.set.spawn(work);
        self.tasks.insert(abort.id(), effect.clone());
        self.running.insert(effect, Running { abort, cancel });
        None
    }

    /// The next piece of work that is over; nothing if none runs.
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
            if let Some(command) = command.or_else(|| crashed(effect)) {
                return Some(command);
            }
        }
    }
}

/// What work gives that has nothing to wait for; a task of its own would only take time.
fn at_once(work: &mut BoxFuture<'static, Command>) -> Option<Command> {
    // Whoever waits is woken through the task that goes on with it.
    match work.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(command) => Some(command),
        Poll::Pending => None,
    }
}

/// Work that panicked is a failed call, not a dead session.
fn crashed(effect: Effect) -> Option<Command> {
    let why = "internal error";
    match effect {
        Effect::Run(call) => Some(Command::Finished { call, outcome: Outcome::failure(why) }),
        Effect::Survey(turn) => Some(Command::Surveyed { turn, sections: Vec::new() }),
        Effect::Review(call) => Some(unreviewed(call, why.into())),
        Effect::Revert(turn) => Some(Command::PutBack { turn, result: Err(why.into()) }),
        Effect::Assess(call) => Some(Command::Assessed { call, assessment: unknown(why).into() }),
        Effect::Summarize(_) => Some(Command::NotSummarized { reason: why.into() }),
        Effect::Save(upto) => Some(Command::Saved { upto, result: Err(why.into()) }),
        Effect::CallModel(_) | Effect::CancelSubagent(_) | Effect::WakeAt(_) => None,
    }
}

fn unknown(why: &str) -> Assessment {
    Assessment {
        risk: Risk::High,
        reasons: vec![why.into()],
        reversible: false,
        preview: String::new(),
        subject: Subject::default(),
        settled: None,
    }
}

/// What is known of a call that a client runs.
fn delegated(state: &State, name: &str, call: &Invocation) -> Option<Assessment> {
    let tool = state.toolset.client_tool(name)?;
    let mut assessment = unknown("a client runs it");
    (assessment.risk, assessment.preview) = (tool.risk, call.input.to_string());
    Some(assessment)
}

fn wake(after: Duration) -> BoxFuture<'static, Command> {
    Box::pin(async move {
        tokio::time::sleep(after).await;
        Command::Wake
    })
}

fn invocation(state: &State, id: &CallId) -> Option<(String, Invocation)> {
    let open = state.open.as_ref()?;
    let call = open.call(id)?;
    let (turn, workspace) = (open.id.clone(), state.workspace.clone());
    let (session, input) = (state.id.clone(), call.request.input.clone());
    // Only the tool that reads pictures pays for looking for them.
    let looks = call.request.tool == LOOK;
    let pictures = if looks { pictures(state) } else { Vec::new() };
    let invocation = Invocation { session, call: id.clone(), turn, workspace, input, pictures };
    Some((call.request.tool.clone(), invocation))
}

fn survey(parts: &Parts, state: &State, turn: &TurnId) -> BoxFuture<'static, Command> {
    let (workspaces, workspace) = (Arc::clone(&parts.workspaces), state.workspace.clone());
    let tokens = state.context_budget();
    let turn = turn.clone();
    Box::pin(async move {
        let sections = workspaces.survey(&workspace, tokens).await;
        Command::Surveyed { turn, sections }
    })
}

fn revert(parts: &Parts, state: &State, turn: &TurnId) -> BoxFuture<'static, Command> {
    let (parts, id, turn) = (parts.clone(), turn.clone(), state.turn(turn).cloned());
    Box::pin(async move {
        let result = match &turn {
            Some(turn) => undo(&parts, turn, UndoRun::Apply).await,
            None => Err(format!("there is no turn {id}")),
        };
        Command::PutBack { turn: id, result }
    })
}

fn review(parts: &Parts, state: &State, call: &CallId) -> BoxFuture<'static, Command> {
    let (parts, prompt, call) = (parts.clone(), prompt::review(state, call), call.clone());
    Box::pin(async move {
        let Some(prompt) = prompt else {
            return unreviewed(call, "there is nothing to read".into());
        };
        match words(&parts, prompt).await {
            Ok((words, usage)) => {
                let (answer, comment) = prompt::reviewed(&words);
                Command::Reviewed { call, answer, comment, usage }
            }
            Err(failure) => unreviewed(call, failure.message),
        }
    })
}

fn unreviewed(call: CallId, comment: String) -> Command {
    Command::Reviewed { call, answer: None, comment, usage: Usage::default() }
}

fn assess(parts: &Parts, state: &State, id: &CallId) -> BoxFuture<'static, Command> {
    let found = invocation(state, id);
    let tool = found.as_ref().and_then(|(name, _)| parts.tool(state, name));
    let delegated = found.as_ref().and_then(|(name, call)| delegated(state, name, call));
    let call = id.clone();
    Box::pin(async move {
        let assessment = match (delegated, tool, found) {
            (Some(assessment), ..) => assessment,
            (None, Some(tool), Some((_, invocation))) => tool.assess(&invocation).await,
            (None, ..) => unknown("the tool is not there"),
        };
        Command::Assessed { call, assessment: assessment.into() }
    })
}

fn run(
    parts: &Parts,
    state: &State,
    id: &CallId,
    tail: &Arc<Tail>,
    cancel: &CancellationToken,
) -> BoxFuture<'static, Command> {
    let found = invocation(state, id);
    let tool = found.as_ref().and_then(|(name, _)| parts.tool(state, name));
    let (call, parts, cancel) = (id.clone(), parts.clone(), cancel.clone());
    let (tail, token) = (Arc::clone(tail), Arc::new(Token(cancel.clone())));
    Box::pin(async move {
        let outcome = match (tool, found) {
            (Some(tool), Some((_, invocation))) => {
                let of = (invocation.turn.clone(), invocation.call.clone());
                let progress = Arc::new(Speaker { of, tail, parts: parts.clone() });
                let desk = Desk { progress, cancel: token };
                let patience = parts.pace.stop_within;
                let output = tokio::select! {
                    output = tool.run(invocation, desk) => output,
                    () = overdue(&cancel, patience) => {
                        Outcome::ended(Ending::Cancelled, "the tool did not stop and was given up").into()
                    }
                };
                keep(&parts, output).await
            }
            _ => Outcome::failure("the tool is not there"),
        };
        Command::Finished { call, outcome }
    })
}

async fn overdue(cancel: &CancellationToken, patience: Duration) {
    cancel.cancelled().await;
    tokio::time::sleep(patience).await;
}

/// Has a model write a summary.
pub(crate) fn summarize(
    parts: Parts,
    prompt: Prompt,
    upto: MessageId,
) -> BoxFuture<'static, Command> {
    Box::pin(async move {
        match words(&parts, prompt).await {
            Ok((summary, usage)) if !summary.trim().is_empty() => {
                Command::Summarized { upto, summary, usage }
            }
            Ok(_) => Command::NotSummarized { reason: "the model wrote nothing".into() },
            Err(failure) => Command::NotSummarized { reason: failure.message },
        }
    })
}

/// Writes a summary's facts to memory, once, however often it is asked for.
fn save(parts: &Parts, state: &State, upto: &MessageId) -> BoxFuture<'static, Command> {
    let entry = state.saving.iter().find(|saving| saving.upto == *upto).map(Saving::entry);
    let (memory, workspace, upto) = (parts.memory.clone(), state.workspace.clone(), upto.clone());
    Box::pin(async move {
        let result = match (memory, entry) {
            (Some(memory), Some(entry)) => match memory.write(&workspace, entry).await {
                Ok(written) => Ok(written.path),
                Err(error) => Err(error.to_string()),
            },
            _ => Err("memory is off".into()),
        };
        Command::Saved { upto, result }
    })
}

/// All that a model says to a prompt.
async fn words(parts: &Parts, prompt: Prompt) -> Result<(String, Usage), Failure> {
    let prompt = fill(prompt, &*parts.blobs).await.map_err(|error| unreadable(&error))?;
    let mut stream = parts.models.stream(prompt);
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

/// Passes a call's words on to followers.
struct Speaker {
    of: (TurnId, CallId),
    tail: Arc<Tail>,
    parts: Parts,
}

impl Progress for Speaker {
    fn say(&self, text: &str) {
        let now: Time = self.parts.stamps.now();
        self.tail.say(self.of.clone(), text.into(), now);
    }
}

struct Token(CancellationToken);

impl Cancel for Token {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.0.cancelled())
    }
}
