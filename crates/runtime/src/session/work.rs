//! Everything else that runs for a session: looking at calls, running them, summaries, alarms.
//!
//! Each piece of work ends with one command for the session.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::message::{Artifact, Part};
use quintet_kernel::model::{Channel, Chunk, Failure, Prompt, Usage};
use quintet_kernel::port::{
    BoxFuture, Cancel, Desk, File, Invocation, Output, Progress, StorageError,
};
use quintet_kernel::session::Effect;
use quintet_kernel::tool::{Assessment, Ending, Outcome, Risk};
use quintet_kernel::{CallId, MessageId, State, Time, TurnId, prompt};
use tokio::task::{AbortHandle, Id, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::parts::Parts;
use crate::session::asking::{fill, unreadable};
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
                | Effect::Assess(_)
                | Effect::Summarize(_)
                | Effect::WakeAt(_) => {
                    if let Some(running) = self.running.remove(&effect) {
                        running.abort.abort();
                    }
                }
            }
        }
    }

    pub(super) fn begin(&mut self, effect: Effect, state: &State, parts: &Parts, tail: &Arc<Tail>) {
        let cancel = CancellationToken::new();
        let work: BoxFuture<'static, Command> = match &effect {
            Effect::CallModel(_) => return,
            Effect::Assess(call) => assess(parts, state, call),
            Effect::Run(call) => run(parts, state, call, tail, &cancel),
            Effect::Summarize(upto) => {
                summarize(parts.clone(), prompt::summarize(state), upto.clone())
            }
            Effect::WakeAt(time) => wake(time.since(parts.stamps.now())),
        };
        let abort = self.set.spawn(work);
        self.tasks.insert(abort.id(), effect.clone());
        self.running.insert(effect, Running { abort, cancel });
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

/// Work that panicked is a failed call, not a dead session.
fn crashed(effect: Effect) -> Option<Command> {
    let why = "internal error";
    match effect {
        Effect::Run(call) => Some(Command::Finished { call, outcome: Outcome::failure(why) }),
        Effect::Assess(call) => Some(Command::Assessed { call, assessment: unknown(why) }),
        Effect::Summarize(_) => Some(Command::NotSummarized { reason: why.into() }),
        Effect::CallModel(_) | Effect::WakeAt(_) => None,
    }
}

fn unknown(why: &str) -> Assessment {
    Assessment {
        risk: Risk::High,
        reasons: vec![why.into()],
        reversible: false,
        preview: String::new(),
        settled: None,
    }
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
    let invocation =
        Invocation { call: id.clone(), turn, workspace, input: call.request.input.clone() };
    Some((call.request.tool.clone(), invocation))
}

fn assess(parts: &Parts, state: &State, id: &CallId) -> BoxFuture<'static, Command> {
    let found = invocation(state, id);
    let tool = found.as_ref().and_then(|(name, _)| parts.tools.get(name).cloned());
    let call = id.clone();
    Box::pin(async move {
        let assessment = match (tool, found) {
            (Some(tool), Some((_, invocation))) => tool.assess(&invocation).await,
            _ => unknown("the tool is not there"),
        };
        Command::Assessed { call, assessment }
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
    let tool = found.as_ref().and_then(|(name, _)| parts.tools.get(name).cloned());
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
                keep_files(&parts, output).await
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

async fn keep_files(parts: &Parts, output: Output) -> Outcome {
    let Output { mut outcome, files } = output;
    for File { name, mime, content } in files {
        let size = content.len() as u64;
        match parts.blobs.put(content).await {
            Ok(blob) => outcome.artifacts.push(Artifact { name, mime, blob, size }),
            Err(error) => outcome.parts.push(lost(&name, &error)),
        }
    }
    outcome
}

fn lost(name: &str, error: &StorageError) -> Part {
    Part::Text(format!("\n{name} could not be kept: {error}"))
}

fn summarize(parts: Parts, prompt: Prompt, upto: MessageId) -> BoxFuture<'static, Command> {
    Box::pin(async move {
        match summary(&parts, prompt).await {
            Ok((summary, usage)) if !summary.trim().is_empty() => {
                Command::Summarized { upto, summary, usage }
            }
            Ok(_) => Command::NotSummarized { reason: "the model wrote nothing".into() },
            Err(failure) => Command::NotSummarized { reason: failure.message },
        }
    })
}

async fn summary(parts: &Parts, prompt: Prompt) -> Result<(String, Usage), Failure> {
    let prompt = fill(prompt, &*parts.blobs).await.map_err(|error| unreadable(&error))?;
    let mut stream = parts.models.stream(prompt);
    let mut text = String::new();
    loop {
        for chunk in stream.next().await? {
            match chunk {
                Chunk::Output(Channel::Text, more) => text.push_str(&more),
                Chunk::Output(Channel::Thought, _) | Chunk::Retrying { .. } => {}
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
