//! Subagents: a model has a session of its own work on a task, and reads what came of it.
//!
//! The call only follows the other session, so it may be made again after a restart: it finds the
//! session that it began before and goes on following it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Weak};

use quintet_kernel::command::{Command, Run, Say};
use quintet_kernel::event::{Event, Origin, SubagentNews, TurnOptions};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::ModelRef;
use quintet_kernel::port::{BoxFuture, Desk, Error, Invocation, Output, Receipt, Sessions, Tool};
use quintet_kernel::session::TurnStatus;
use quintet_kernel::tool::{Assessment, Ending, Kind, Outcome, Placement, Risk, Spec, Subject};
use quintet_kernel::toolset::Toolset;
use quintet_kernel::{CallId, Cursor, Item, SessionId, State};
use serde_json::{Value, json};

use crate::parts::Parts;
use crate::runtime::{Runtime, Shared};

/// The tool's name.
pub const NAME: &str = "spawn_agent";

/// How deep subagents may have subagents.
const DEPTH: u32 = 2;
/// How many of a session's subagents may work at once.
const NUMBER: usize = 8;
/// The label that says how deep a session is.
const DEEP: &str = "subagent_depth";

const INSTRUCTIONS: &str = "You work on one task for another agent, in the same workspace. Do it on \
    your own; nobody answers questions. End with an answer that says what you found or did: that \
    answer is all the other agent reads.";

/// What models are told of the tool.
pub fn spec() -> Spec {
    Spec {
        name: NAME.into(),
        description: "Have another agent work on a task of its own, in the same workspace, and read \
                      its answer. It knows nothing of this conversation, so say everything it needs. \
                      Several calls at once work side by side."
            .into(),
        schema: json!({
            "type": "object",
            "properties": {
                "task": { "type": "string", "description": "What to do, and what to report." },
                "model": { "type": "string", "description": "provider/model, unless the same as yours." },
                "tools": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "The only tools it may use, unless all of yours.",
                },
            },
            "required": ["task"],
        }),
        kind: Kind::Read,
        placement: Placement::Daemon,
    }
}

/// The parts with the tool among them, if the rules offer it.
pub(crate) fn joined(mut parts: Parts, shared: &Weak<Shared>) -> Parts {
    if parts.rules.tools.iter().any(|tool| tool.name == NAME) {
        let tool = Spawn { spec: Arc::new(spec()), shared: Weak::clone(shared) };
        parts.tools.insert(NAME.into(), Arc::new(tool));
    }
    parts
}

struct Spawn {
    spec: Arc<Spec>,
    shared: Weak<Shared>,
}

impl Tool for Spawn {
    fn spec(&self) -> Arc<Spec> {
        Arc::clone(&self.spec)
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let task = Task::read(&call.input);
        let preview = task.as_ref().map(|task| task.text.clone()).unwrap_or_default();
        let assessment = Assessment {
            risk: Risk::Low,
            reasons: Vec::new(),
            reversible: true,
            preview,
            subject: Subject::default(),
            settled: task.err().map(Outcome::failure),
        };
        Box::pin(async move { assessment })
    }

    fn run(&self, call: Invocation, desk: Desk) -> BoxFuture<'_, Output> {
        let runtime = self.shared.upgrade().map(Runtime::of);
        Box::pin(async move {
            let Some(runtime) = runtime else { return stopped().into() };
            let task = match Task::read(&call.input) {
                Ok(task) => task,
                Err(why) => return Outcome::failure(why).into(),
            };
            let errand = Errand { runtime, parent: call.session, call: call.call };
            let child = match errand.child(&task, &call.workspace).await {
                Ok(child) => child,
                Err(why) => return Outcome::failure(why).into(),
            };
            tokio::select! {
                biased;
                () = desk.cancel.cancelled() => {
                    // Refused if the daemon shuts down: then the work goes on after the restart.
                    let cancel = Command::Cancel { reason: Some("the parent was cancelled".into()) };
                    let _ = errand.runtime.submit(&child, cancel).await;
                    stopped().into()
                }
                outcome = errand.see_through(&child, &task) => outcome.into(),
            }
        })
    }
}

fn stopped() -> Outcome {
    Outcome::ended(Ending::Cancelled, "the subagent was stopped")
}

/// What is asked for.
struct Task {
    text: String,
    model: Option<ModelRef>,
    tools: Option<Vec<String>>,
}

impl Task {
    fn read(input: &Value) -> Result<Self, String> {
        let text = input["task"].as_str().filter(|task| !task.trim().is_empty());
        let text = text.ok_or("task must say what to do")?.to_owned();
        let model = match &input["model"] {
            Value::Null => None,
            Value::String(name) => {
                Some(ModelRef::parse(name).ok_or(format!("{name} is no provider/model"))?)
            }
            _ => return Err("model must be a string".into()),
        };
        let tools = match &input["tools"] {
            Value::Null => None,
            Value::Array(names) => {
                let names: Option<Vec<String>> =
                    names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
                Some(names.ok_or("tools must be a list of names")?)
            }
            _ => return Err("tools must be a list of names".into()),
        };
        Ok(Self { text, model, tools })
    }
}

/// A call and where it came from.
struct Errand {
    runtime: Runtime,
    parent: SessionId,
    call: CallId,
}

impl Errand {
    /// The session that works on the task; the one that began before, if there is one.
    async fn child(&self, task: &Task, workspace: &Path) -> Result<SessionId, String> {
        let parent = self.runtime.view(&self.parent).await.map_err(|error| error.to_string())?;
        if let Some(known) = parent.subagents.iter().find(|known| known.call == self.call) {
            return Ok(known.session.clone());
        }
        if parent.subagents.iter().filter(|known| !known.over).count() >= NUMBER {
            return Err(format!("{NUMBER} subagents work already; wait for one of them"));
        }
        let depth = parent.labels.get(DEEP).and_then(|depth| depth.parse().ok()).unwrap_or(0) + 1;
        let toolset = toolset(&parent, task, depth)?;
        let labels = BTreeMap::from([
            (DEEP.to_owned(), depth.to_string()),
            ("parent".to_owned(), self.parent.to_string()),
            ("title".to_owned(), task.text.chars().take(50).collect()),
        ]);
        let model = task.model.clone().unwrap_or_else(|| parent.current_model().clone());
        let origin = Origin {
            workspace: workspace.to_owned(),
            system_prompt: Some(INSTRUCTIONS.into()),
            model: Some(model.clone()),
            labels,
        };
        let begun = async {
            let child = self.runtime.create(origin).await?.session;
            self.runtime.submit(&child, Command::Offer(toolset)).await?;
            let news = SubagentNews::Spawned { task: task.text.clone(), model: Some(model) };
            self.tell(&child, news).await?;
            Ok::<_, Error>(child)
        };
        begun.await.map_err(|error| error.to_string())
    }

    /// Has the task worked on, and waits until it is.
    async fn see_through(&self, child: &SessionId, task: &Task) -> Outcome {
        match self.follow(child, task).await {
            Ok(outcome) => outcome,
            // The call is made again when the daemon is back.
            Err(Error::Closing) => stopped(),
            Err(error) => Outcome::failure(format!("the subagent is lost: {error}")),
        }
    }

    async fn follow(&self, child: &SessionId, task: &Task) -> Result<Outcome, Error> {
        let state = self.runtime.view(child).await?;
        let mut follow = self.runtime.follow(child, Cursor::after(state.head)).await?;
        match state.turns.last() {
            None => {
                self.runtime.submit(child, say(&task.text)).await?;
            }
            Some(_) if !state.busy() => return self.complete(child).await,
            Some(_) => {}
        }
        let mut steps = state.open.as_ref().map_or(0, |open| u64::from(open.steps));
        while let Some(items) = follow.next().await? {
            for item in items {
                let Item::Event(record) = &item else { continue };
                let status = match &record.event {
                    Event::StepStarted { .. } => {
                        steps += 1;
                        "running"
                    }
                    Event::ApprovalRequested { .. } | Event::TurnHeld { .. } => "waiting",
                    Event::TurnCompleted { .. }
                    | Event::TurnFailed { .. }
                    | Event::TurnCancelled { .. } => return self.complete(child).await,
                    _ => continue,
                };
                self.tell(child, SubagentNews::Progressed { steps, status: status.into() }).await?;
            }
        }
        Err(Error::Closing)
    }

    /// What came of it.
    async fn complete(&self, child: &SessionId) -> Result<Outcome, Error> {
        let state = self.runtime.view(child).await?;
        let turn = state.turns.last();
        let ok = turn.is_some_and(|turn| turn.status == TurnStatus::Succeeded);
        let why = turn.and_then(|turn| turn.error.clone());
        let result = match ok {
            true => last_words(&state),
            false => why.unwrap_or_else(|| "it was cancelled".into()),
        };
        let usage = state.usage;
        self.tell(child, SubagentNews::Completed { result: result.clone(), ok, usage }).await?;
        Ok(match ok {
            true => Outcome::success(result),
            false => Outcome::failure(format!("the subagent did not finish: {result}")),
        })
    }

    async fn tell(&self, child: &SessionId, news: SubagentNews) -> Result<Receipt, Error> {
        let (call, session) = (self.call.clone(), child.clone());
        self.runtime.submit(&self.parent, Command::Subagent { call, session, news }).await
    }
}

/// What it may use: no more than its parent, and no subagents where there are enough.
fn toolset(parent: &State, task: &Task, depth: u32) -> Result<Toolset, String> {
    let may = |name: &str| parent.toolset.includes(name) && (name != NAME || depth < DEPTH);
    let names = parent.rules().tools.iter().map(|tool| tool.name.clone());
    let has: Vec<String> = names.filter(|name| may(name)).collect();
    let daemon = match &task.tools {
        None => has,
        Some(wanted) => match wanted.iter().find(|name| !has.contains(name)) {
            Some(unknown) => return Err(format!("there is no tool {unknown} to give")),
            None => wanted.clone(),
        },
    };
    Ok(Toolset { daemon: Some(daemon), ..Toolset::default() })
}

fn last_words(state: &State) -> String {
    let spoken = state.messages.iter().rev().find(|message| message.role == Role::Assistant);
    spoken.map(|message| message.text()).unwrap_or_default()
}

fn say(text: &str) -> Command {
    let (role, parts) = (Role::User, vec![Part::Text(text.into())]);
    Command::Say(Say { role, parts, run: Run::Now, options: TurnOptions::default() })
}
