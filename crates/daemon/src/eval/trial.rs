//! One attempt at a task: a folder, a session, and the result.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use quintet_kernel::command::{Command, NewMessage, TurnStart};
use quintet_kernel::event::{Event, NewSession, TurnOptions};
use quintet_kernel::message::{Message, Part, Role, text_of};
use quintet_kernel::model::{ModelRef, Usage};
use quintet_kernel::port::{
    BoxFuture, CancelSignal, Clock as _, Invocation, NobodyToAsk, Sessions, Tool, ToolContext,
    ToolOutput, ToolProgress,
};
use quintet_kernel::{CallId, Cursor, Item, SessionId, Time, TurnId};
use quintet_runtime::SystemClock;
use serde_json::json;

use super::check;
use super::task::Task;

/// The environment of all attempts.
pub(super) struct Bench<'a> {
    pub(super) sessions: &'a dyn Sessions,
    /// Runs setup and check commands, in the same sandbox as a model's commands.
    pub(super) shell: Arc<dyn Tool>,
    pub(super) model: &'a ModelRef,
}

/// The result of an attempt.
#[derive(Debug, Default)]
pub(super) struct Trial {
    /// Why the attempt failed; `None` if it succeeded.
    pub(super) failure: Option<String>,
    /// Model calls.
    pub(super) steps: u32,
    pub(super) usage: Usage,
    /// Seconds until the model's first text or call.
    pub(super) first_seconds: f64,
    pub(super) seconds: f64,
    /// The messages and calls, as readable text.
    pub(super) transcript: String,
}

impl Bench<'_> {
    /// Runs a task in a new folder.
    ///
    /// Fails only if the task cannot be set up; a failing model is a result.
    pub(super) async fn attempt(&self, task: &Task, folder: &Path) -> Result<Trial> {
        check::put_files(task, folder).with_context(|| task.name.clone())?;
        if let Some(script) = &task.setup {
            let output = self.run(script, folder).await?;
            if !output.outcome.ok() {
                bail!("the set-up of {}: {}", task.name, text_of(&output.outcome.parts));
            }
        }
        let before = check::fingerprint(folder)?;
        let (mut trial, answer) = self.session(task, folder).await?;
        if trial.failure.is_none() {
            trial.failure = check::of_files(&task.check, folder, &before, &answer);
        }
        if let (None, Some(command)) = (&trial.failure, &task.check.command) {
            check::restore(task, folder)?;
            let output = self.run(command, folder).await?;
            let text = text_of(&output.outcome.parts);
            trial.failure = check::of_command(&task.check, output.outcome.ok(), &text);
        }
        Ok(trial)
    }

    /// One session with one message. The answer is the last text of the model.
    async fn session(&self, task: &Task, folder: &Path) -> Result<(Trial, String)> {
        let origin = NewSession {
            workspace: folder.to_owned(),
            system_prompt: None,
            model: Some(self.model.clone()),
            labels: Default::default(),
            toolset: None,
        };
        let session = self.sessions.create(origin).await?.session;
        let mut follow = self.sessions.follow(&session, Cursor::START).await?;
        let mut notes = Notes { began: SystemClock.now(), first: None, trial: Trial::default() };
        let parts = vec![Part::Text(task.prompt.trim().into())];
        let say = NewMessage::new(Role::User, parts, TurnStart::Now, TurnOptions::default());
        self.sessions.submit(&session, Command::AddMessage(Box::new(say))).await?;
        while let Some(items) = follow.next().await? {
            if items.iter().any(|item| notes.over(item)) {
                break;
            }
        }
        let view = self.sessions.view(&session).await?;
        let says = |message: &&Arc<Message>| {
            message.role == Role::Assistant && !message.text().trim().is_empty()
        };
        let answer = view.messages.iter().rev().find(says).map(|message| message.text());
        Ok((notes.trial, answer.unwrap_or_default()))
    }

    async fn run(&self, command: &str, folder: &Path) -> Result<ToolOutput> {
        let silent = Arc::new(Silent);
        let context = ToolContext {
            progress: silent.clone(),
            cancel: silent,
            questions: Arc::new(NobodyToAsk),
        };
        let call = Invocation {
            session: SessionId::parse("sess_eval").context("a name")?,
            // Changes of files are recorded by call.
            call: SystemClock.stamp().id::<CallId>(),
            turn: SystemClock.stamp().id::<TurnId>(),
            workspace: folder.to_owned(),
            input: json!({ "command": command }),
            pictures: Vec::new(),
        };
        Ok(self.shell.run(call, context).await)
    }
}

/// The counts of a running session.
struct Notes {
    began: Time,
    first: Option<Time>,
    trial: Trial,
}

impl Notes {
    /// Counts an item; true if it ends the turn.
    fn over(&mut self, item: &Item) -> bool {
        match item {
            Item::Text { text, at, .. } => {
                self.first.get_or_insert(*at);
                self.trial.transcript.push_str(text);
                false
            }
            Item::Progress { .. } => false,
            Item::Event(record) => {
                self.note(&record.event, record.at);
                matches!(
                    record.event,
                    Event::TurnCompleted { .. }
                        | Event::TurnFailed { .. }
                        | Event::TurnCancelled { .. }
                )
            }
        }
    }

    fn note(&mut self, event: &Event, at: Time) {
        let trial = &mut self.trial;
        if let Event::ModelCompleted { calls, usage, .. } = event {
            self.first.get_or_insert(at);
            trial.steps += 1;
            trial.usage = trial.usage.plus(*usage);
            for call in calls {
                let _ = write!(trial.transcript, "\n> {} {}\n", call.tool, call.input);
            }
        }
        if let Event::CallCompleted { outcome, .. } = event {
            let text = text_of(&outcome.parts);
            let _ = writeln!(trial.transcript, "< {}", text.replace('\n', "\n  "));
        }
        if let Event::TurnFailed { message, .. } = event {
            trial.failure = Some(format!("the turn failed: {message}"));
        }
        if let Event::TurnCancelled { .. } = event {
            trial.failure = Some("the turn was cancelled".into());
        }
        trial.seconds = at.since(self.began).as_secs_f64();
        trial.first_seconds =
            self.first.map_or(trial.seconds, |first| first.since(self.began).as_secs_f64());
    }
}

/// Discards the progress of setup and check commands.
struct Silent;

impl ToolProgress for Silent {
    fn report(&self, _: &str) {}
}

impl CancelSignal for Silent {
    fn cancelled(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
