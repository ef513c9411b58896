//! One call and the session that works for it.

use std::collections::BTreeMap;
use std::path::Path;

use quintet_kernel::command::{Command, Run, Say};
use quintet_kernel::event::{Answer, Budget, Event, More, Origin, SubagentNews, TurnOptions};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::port::{Error, Receipt, Sessions as _};
use quintet_kernel::session::{Asked, Call, CallPhase, TurnStatus};
use quintet_kernel::tool::{Assessment, Outcome, Risk, Subject};
use quintet_kernel::toolset::Toolset;
use quintet_kernel::{CallId, Cursor, Item, SessionId, State};
use serde_json::Value;

use super::task::Task;
use super::{Limits, NAME, stopped};
use crate::runtime::Runtime;

/// What stands where a question would name a tool, if it is about a turn.
const RESUME: &str = "resume_turn";
/// The label that says how deep a session is.
const DEEP: &str = "subagent_depth";

const INSTRUCTIONS: &str = "You work on one task for another agent, in the same workspace. Do it on \
    your own; nobody answers questions. End with an answer that says what you found or did: that \
    answer is all the other agent reads.";

/// A call and where it came from.
pub(super) struct Errand {
    pub(super) runtime: Runtime,
    pub(super) parent: SessionId,
    pub(super) call: CallId,
    pub(super) task: Task,
}

impl Errand {
    /// The session that works on the task; the one that began before, if there is one.
    ///
    /// Its parent knows of it before it is there, so that a crash in between leaves no session that
    /// nobody knows of.
    pub(super) async fn child(&self, workspace: &Path) -> Result<SessionId, String> {
        let told = |error: Error| error.to_string();
        let parent = self.runtime.view(&self.parent).await.map_err(told)?;
        let toolset = self.toolset(&parent)?;
        let model = self.task.model.clone().unwrap_or_else(|| parent.current_model().clone());
        let known = parent.subagents.iter().find(|known| known.call == self.call);
        let child = match known {
            Some(known) => known.session.clone(),
            None => {
                let child: SessionId = self.runtime.parts().stamps.stamp().id();
                let (call, session) = (self.call.clone(), child.clone());
                let (task, model) = (self.task.text.clone(), model.clone());
                let most = self.limits().at_once;
                let spawn = Command::Spawn { call, session, task, model, most };
                let receipt = self.runtime.submit(&self.parent, spawn).await.map_err(told)?;
                if receipt.records.is_empty() {
                    return Err(format!("{most} subagents work already; wait for one of them"));
                }
                child
            }
        };
        let labels = BTreeMap::from([
            (DEEP.to_owned(), (depth(&parent) + 1).to_string()),
            ("parent".to_owned(), self.parent.to_string()),
            ("title".to_owned(), self.task.text.chars().take(50).collect()),
        ]);
        let origin = Origin {
            workspace: workspace.to_owned(),
            system_prompt: Some(INSTRUCTIONS.into()),
            model: Some(model),
            labels,
            toolset: Some(toolset),
        };
        self.runtime.ensure(&child, origin).await.map_err(told)?;
        Ok(child)
    }

    fn limits(&self) -> Limits {
        self.runtime.parts().subagents
    }

    /// What it may use: no more than its parent, and no subagents where there are enough.
    fn toolset(&self, parent: &State) -> Result<Toolset, String> {
        let deep = depth(parent) + 1;
        if deep > self.limits().depth {
            return Err("subagents of subagents go no deeper here; do it yourself".into());
        }
        let may = |name: &str| {
            parent.toolset.includes(name) && (name != NAME || deep < self.limits().depth)
        };
        let names = parent.rules().tools.iter().map(|tool| tool.name.clone());
        let has: Vec<String> = names.filter(|name| may(name)).collect();
        let daemon = match &self.task.tools {
            None => has,
            Some(wanted) => match wanted.iter().find(|name| !has.contains(name)) {
                Some(unknown) => return Err(format!("there is no tool {unknown} to give")),
                None => wanted.clone(),
            },
        };
        Ok(Toolset { daemon: Some(daemon), ..Toolset::default() })
    }

    /// Has the task worked on, and waits until it is.
    pub(super) async fn see_through(&self, child: &SessionId) -> Outcome {
        match self.follow(child).await {
            Ok(outcome) => outcome,
            // The call is made again when the daemon is back.
            Err(Error::Closing) => stopped(),
            Err(error) => Outcome::failure(format!("the subagent is lost: {error}")),
        }
    }

    async fn follow(&self, child: &SessionId) -> Result<Outcome, Error> {
        let state = self.runtime.view(child).await?;
        let mut follow = self.runtime.follow(child, Cursor::after(state.head)).await?;
        match state.turns.last() {
            None => {
                let say = self.say(&*self.runtime.view(&self.parent).await?);
                self.runtime.submit(child, say).await?;
            }
            Some(_) if !state.busy() => return self.complete(child).await,
            Some(_) => self.catch_up(child, &state).await?,
        }
        let mut steps = state.open.as_ref().map_or(0, |open| u64::from(open.steps));
        while let Some(items) = follow.next().await? {
            for item in items {
                let Item::Event(record) = &item else { continue };
                if matches!(record.event, Event::StepStarted { .. }) {
                    steps += 1;
                }
                match &record.event {
                    Event::TurnCompleted { .. }
                    | Event::TurnFailed { .. }
                    | Event::TurnCancelled { .. } => return self.complete(child).await,
                    event => self.pass_on(child, event, steps).await?,
                }
            }
        }
        Err(Error::Closing)
    }

    /// Tells the parent what it should know of an event.
    async fn pass_on(&self, child: &SessionId, event: &Event, steps: u64) -> Result<(), Error> {
        let progressed = |status: &str| SubagentNews::Progressed { steps, status: status.into() };
        match event {
            Event::StepStarted { .. } => self.tell(child, progressed("running")).await?,
            Event::TurnHeld { .. } => {
                self.tell(child, progressed("waiting")).await?;
                let state = self.runtime.view(child).await?;
                let Some(held) = held(child, &state) else { return Ok(()) };
                self.tell(child, question(held)).await?
            }
            Event::TurnReleased { turn } => {
                let Some(call) = CallId::parse(turn.as_str()) else { return Ok(()) };
                self.tell(child, progressed("running")).await?;
                let settled = SubagentNews::Settled { call, answer: Some(Answer::Allow) };
                self.tell(child, settled).await?
            }
            // A turn that was held may have been called off instead; else nobody asked, and nobody minds.
            Event::StopRequested { turn, .. } => {
                let Some(call) = CallId::parse(turn.as_str()) else { return Ok(()) };
                let settled = SubagentNews::Settled { call, answer: Some(Answer::Deny) };
                self.tell(child, settled).await?
            }
            Event::ApprovalRequested { call, tool, input, assessment, expires, .. } => {
                self.tell(child, progressed("waiting")).await?;
                let (call, tool, input) = (call.clone(), tool.clone(), input.clone());
                let (assessment, expires) = (Box::new(assessment.clone()), *expires);
                let asked = SubagentNews::Asked { call, tool, input, assessment, expires };
                self.tell(child, asked).await?
            }
            Event::ApprovalAnswered { call, answer, .. } => {
                let settled = SubagentNews::Settled { call: call.clone(), answer: Some(*answer) };
                self.tell(child, settled).await?
            }
            // What is over waits no more, whether it was answered or not.
            Event::CallCompleted { call, .. } => {
                self.tell(child, SubagentNews::Settled { call: call.clone(), answer: None }).await?
            }
            // What its own subagents ask is asked here, too.
            Event::Subagent { session, news, .. } => match news {
                SubagentNews::Asked { .. } | SubagentNews::Settled { .. } => {
                    self.tell(session, news.clone()).await?
                }
                SubagentNews::Completed { .. }
                | SubagentNews::Spawned { .. }
                | SubagentNews::Progressed { .. } => return Ok(()),
            },
            _ => return Ok(()),
        };
        Ok(())
    }

    /// What happened while nobody followed: questions that the parent does not know of yet, and those
    /// that it knows of and are settled. What it knows already it does not note twice.
    async fn catch_up(&self, child: &SessionId, state: &State) -> Result<(), Error> {
        let asked = asked(child, state);
        let parent = self.runtime.view(&self.parent).await?;
        let open = |known: &&Asked| {
            asked.iter().any(|one| one.session == known.session && one.call == known.call)
        };
        for known in parent.asked.iter().filter(|known| known.via == self.call) {
            if !open(&known) {
                let settled = SubagentNews::Settled { call: known.call.clone(), answer: None };
                self.tell(&known.session, settled).await?;
            }
        }
        for asked in asked {
            let session = asked.session.clone();
            self.tell(&session, question(asked)).await?;
        }
        Ok(())
    }

    /// What came of it.
    async fn complete(&self, child: &SessionId) -> Result<Outcome, Error> {
        let state = self.runtime.view(child).await?;
        let turn = state.turns.last();
        let ok = turn.is_some_and(|turn| turn.status == TurnStatus::Succeeded);
        let why = turn.and_then(|turn| turn.error.clone());
        let words = last_words(&state);
        let result = match ok {
            true => words.clone(),
            false => why.unwrap_or_else(|| "it was cancelled".into()),
        };
        let usage = state.usage;
        self.tell(child, SubagentNews::Completed { result: result.clone(), ok, usage }).await?;
        Ok(match ok {
            true => Outcome::success(result),
            false if words.is_empty() => {
                Outcome::failure(format!("the subagent did not finish: {result}"))
            }
            false => Outcome::failure(format!(
                "the subagent did not finish: {result}\nthe last it said: {words}"
            )),
        })
    }

    async fn tell(&self, session: &SessionId, news: SubagentNews) -> Result<Receipt, Error> {
        let (call, session) = (self.call.clone(), session.clone());
        self.runtime.submit(&self.parent, Command::Subagent { call, session, news }).await
    }

    /// The task, to be worked on as carefully as the parent's turn and with no more than it has left.
    fn say(&self, parent: &State) -> Command {
        let (role, parts) = (Role::User, vec![Part::Text(self.task.text.clone())]);
        let mut options = TurnOptions::default();
        let mut left = Budget::default();
        if let Some(open) = &parent.open {
            options.asking = open.options.asking;
            options.answer_within_ms = open.options.answer_within_ms;
            let account = open.options.account().cloned();
            options.more = More { account, ..More::default() }.unless_empty();
            let tokens = open.limits(parent.rules()).tokens;
            left.tokens = Some(tokens.saturating_sub(open.usage.total()));
        }
        let budget = self.task.budget.within(self.limits().budget).within(left);
        options.budget = Some(Box::new(budget));
        Command::Say(Box::new(Say::new(role, parts, Run::Now, options)))
    }
}

fn depth(state: &State) -> u32 {
    state.labels.get(DEEP).and_then(|depth| depth.parse().ok()).unwrap_or(0)
}

/// What a session and its own subagents ask a person.
fn asked(session: &SessionId, state: &State) -> Vec<Asked> {
    let own = |call: &Call| match &call.phase {
        CallPhase::Asked { assessment, expires } => Some(Asked {
            via: call.id().clone(),
            session: session.clone(),
            call: call.id().clone(),
            tool: call.request.tool.clone(),
            input: call.request.input.clone(),
            assessment: Box::new(assessment.clone()),
            expires: *expires,
        }),
        _ => None,
    };
    let calls = state.open.iter().flat_map(|open| open.calls());
    let calls = calls.filter_map(own).chain(state.asked.iter().cloned());
    held(session, state).into_iter().chain(calls).collect()
}

/// Whether a turn that is held should go on, as a question.
fn held(session: &SessionId, state: &State) -> Option<Asked> {
    let call = state.open.as_ref()?.question()?;
    let assessment = Assessment {
        risk: Risk::Low,
        reasons: Vec::new(),
        reversible: false,
        preview: "go on with what the end of the daemon cut off".into(),
        subject: Subject::default(),
        settled: None,
    };
    Some(Asked {
        via: call.clone(),
        session: session.clone(),
        call,
        tool: RESUME.into(),
        input: Value::Object(serde_json::Map::new()),
        assessment: Box::new(assessment),
        expires: None,
    })
}

fn question(asked: Asked) -> SubagentNews {
    let Asked { call, tool, input, assessment, expires, .. } = asked;
    SubagentNews::Asked { call, tool, input, assessment, expires }
}

fn last_words(state: &State) -> String {
    let spoken = state.messages.iter().rev().find(|message| message.role == Role::Assistant);
    spoken.map(|message| message.text()).unwrap_or_default()
}
