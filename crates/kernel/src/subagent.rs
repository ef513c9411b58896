//! Sessions that work for a call of another one: how they begin, and what the other one hears of them.
//!
//! The runtime follows these when it carries a call out; what subagents may do is decided in
//! `session/subagents`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::approval_id::ApprovalId;
use crate::command::{Command, NewMessage, TurnStart};
use crate::event::{ApprovalDecision, Budget, Event, NewSession, SubagentUpdate};
use crate::id::{CallId, SessionId};
use crate::message::{Part, Role};
use crate::model::ModelRef;
use crate::session::{Call, CallPhase, State, Subagent, SubagentApproval, TurnStatus};
use crate::tool::{Assessment, CallSubject, Outcome, Risk};

/// The tool that has a session work on a task.
pub const SPAWN_TOOL: &str = "spawn_agent";
/// What stands where a question would name a tool, if it is about a turn.
const RESUME_TURN: &str = "resume_turn";
/// The label that a session begins with if it works for another: how many are above it.
pub(crate) const DEPTH_LABEL: &str = "subagent_depth";
/// How many characters of a task are its session's title.
const TITLE_CHARS: usize = 50;

const INSTRUCTIONS: &str = "You work on one task for another agent, in the same workspace. Do it on \
    your own; nobody answers questions. End with an answer that says what you found or did: that \
    answer is all the other agent reads.";

/// A task as a model asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// What to do.
    pub text: String,
    /// The model; that of the session that asks if not given.
    pub model: Option<ModelRef>,
    /// The only tools it may use; all of the session that asks if not given.
    pub tools: Option<Vec<String>>,
    /// What it may take at most.
    pub budget: Budget,
}

/// How a session begins that works for a call.
#[derive(Clone, Debug)]
pub struct SubagentStart {
    /// The session, with its tools.
    pub origin: NewSession,
    /// The task.
    pub first_message: Command,
}

/// How a subagent of a session begins; nothing if that was not written down.
pub fn subagent_start(parent: &State, subagent: &Subagent) -> Option<SubagentStart> {
    let delegation = subagent.delegation.as_deref()?;
    let title = subagent.task.chars().take(TITLE_CHARS).collect();
    let labels = BTreeMap::from([
        (DEPTH_LABEL.to_owned(), delegation.depth.to_string()),
        ("parent".to_owned(), parent.id.to_string()),
        ("title".to_owned(), title),
    ]);
    let origin = NewSession {
        workspace: parent.workspace.clone(),
        system_prompt: Some(INSTRUCTIONS.into()),
        model: subagent.model.clone(),
        labels,
        toolset: Some(Box::new(delegation.toolset.clone())),
    };
    let (role, parts) = (Role::User, vec![Part::Text(subagent.task.clone())]);
    let options = delegation.options.clone();
    let first_message =
        Command::AddMessage(Box::new(NewMessage::new(role, parts, TurnStart::Now, options)));
    Some(SubagentStart { origin, first_message })
}

/// What is told of a session.
type ParentUpdate = (SessionId, SubagentUpdate);

/// What a session hears of an event of its subagent, which has asked its model so many times.
pub fn parent_updates(child: &SessionId, event: &Event, steps: u64) -> Vec<ParentUpdate> {
    let progressed = |status: &str| SubagentUpdate::Progressed { steps, status: status.into() };
    let settled = |question: ApprovalId, answer| SubagentUpdate::Settled { call: question, answer };
    let own =
        |news: Vec<SubagentUpdate>| news.into_iter().map(|news| (child.clone(), news)).collect();
    match event {
        Event::StepStarted { .. } => own(vec![progressed("running")]),
        Event::TurnHeld { turn, .. } => {
            own(vec![progressed("waiting"), held_turn(ApprovalId::Turn(turn.clone()))])
        }
        Event::TurnReleased { turn } => {
            let allowed = settled(ApprovalId::Turn(turn.clone()), Some(ApprovalDecision::Allow));
            own(vec![progressed("running"), allowed])
        }
        // A turn that was held may have been called off instead; else nobody asked, and nobody minds.
        Event::StopRequested { turn, .. } => {
            own(vec![settled(ApprovalId::Turn(turn.clone()), Some(ApprovalDecision::Deny))])
        }
        Event::ApprovalRequested { call, tool, input, assessment, expires, .. } => {
            let (call, tool, input) = (call.clone().into(), tool.clone(), input.clone());
            let (assessment, expires) = (Box::new(assessment.clone()), *expires);
            let asked = SubagentUpdate::Asked { call, tool, input, assessment, expires };
            own(vec![progressed("waiting"), asked])
        }
        Event::ApprovalAnswered { call, answer, .. } => {
            own(vec![settled(call.clone().into(), Some(*answer))])
        }
        // What is over waits no more, whether it was answered or not.
        Event::CallCompleted { call, .. } => own(vec![settled(call.clone().into(), None)]),
        // What its own subagents ask is asked here, too.
        Event::Subagent { session, news, .. } => match news {
            SubagentUpdate::Asked { .. } | SubagentUpdate::Settled { .. } => {
                vec![(session.clone(), news.clone())]
            }
            SubagentUpdate::Completed { .. }
            | SubagentUpdate::Spawned { .. }
            | SubagentUpdate::Progressed { .. } => Vec::new(),
        },
        Event::SessionCreated(_)
        | Event::Forked { .. }
        | Event::Labelled { .. }
        | Event::ModelSwitched { .. }
        | Event::Instructed { .. }
        | Event::Moved { .. }
        | Event::Forgotten { .. }
        | Event::Superseded { .. }
        | Event::ToolsChosen(_)
        | Event::AttachmentAdded(_)
        | Event::MessageAdded { .. }
        | Event::TurnStarted { .. }
        | Event::ContextGathered { .. }
        | Event::TextAppended { .. }
        | Event::ModelRetrying { .. }
        | Event::ModelCompleted { .. }
        | Event::StepInterrupted { .. }
        | Event::VerificationRequested { .. }
        | Event::ReviewRequested { .. }
        | Event::Reviewed { .. }
        | Event::CallStarted { .. }
        | Event::CallClaimed { .. }
        | Event::ClaimHolderLost { .. }
        | Event::ClaimReleased { .. }
        | Event::TurnResumed { .. }
        | Event::TurnCompleted { .. }
        | Event::TurnFailed { .. }
        | Event::TurnCancelled { .. }
        | Event::RevertRequested { .. }
        | Event::Reverted { .. }
        | Event::RevertFailed { .. }
        | Event::CompactionRequested { .. }
        | Event::Compacted { .. }
        | Event::CompactionFailed { .. }
        | Event::MemorySaved { .. }
        | Event::MemoryNotSaved { .. }
        | Event::SessionClosed { .. } => Vec::new(),
    }
}

/// What a session missed while nobody followed its subagent: questions that it does not know of, and
/// those that it knows of and are settled.
pub fn missed_updates(parent: &State, call: &CallId, child: &State) -> Vec<ParentUpdate> {
    let asked = open_approvals(child);
    let is_open = |known: &&SubagentApproval| {
        let same = |news: &SubagentUpdate| matches!(news, SubagentUpdate::Asked { call, .. } if *call == known.question);
        asked.iter().any(|(session, news)| *session == known.session && same(news))
    };
    let known = parent.asked.iter().filter(|known| known.via == *call);
    let settled = known.filter(|known| !is_open(known)).map(|known| {
        let settled = SubagentUpdate::Settled { call: known.question.clone(), answer: None };
        (known.session.clone(), settled)
    });
    let settled: Vec<ParentUpdate> = settled.collect();
    settled.into_iter().chain(asked).collect()
}

/// What came of a subagent: what the session that it works for is told, and what the model reads.
pub fn subagent_result(child: &State) -> (SubagentUpdate, Outcome) {
    let turn = child.turns.last();
    let ok = turn.is_some_and(|turn| turn.status == TurnStatus::Succeeded);
    let spoken = child.messages.iter().rev().find(|message| message.role == Role::Assistant);
    let words = spoken.map(|message| message.text()).unwrap_or_default();
    let why = turn.and_then(|turn| turn.error.clone());
    let result = if ok { words.clone() } else { why.unwrap_or_else(|| "it was cancelled".into()) };
    let outcome = if ok {
        Outcome::success(result.clone())
    } else if words.is_empty() {
        Outcome::failure(format!("the subagent did not finish: {result}"))
    } else {
        let last = format!("the last it said: {words}");
        Outcome::failure(format!("the subagent did not finish: {result}\n{last}"))
    };
    (SubagentUpdate::Completed { result, ok, usage: child.usage }, outcome)
}

/// What a session and its own subagents ask a person.
fn open_approvals(state: &State) -> Vec<ParentUpdate> {
    let own = |call: &Call| match &call.phase {
        CallPhase::Asked { assessment, expires } => Some(SubagentUpdate::Asked {
            call: call.id().clone().into(),
            tool: call.request.tool.clone(),
            input: call.request.input.clone(),
            assessment: Box::new(assessment.clone()),
            expires: *expires,
        }),
        CallPhase::Requested
        | CallPhase::InReview { .. }
        | CallPhase::Reviewed { .. }
        | CallPhase::Allowed
        | CallPhase::Denied { .. }
        | CallPhase::Started(..)
        | CallPhase::Done(_) => None,
    };
    let turns = state.open.iter().filter_map(|open| open.question()).map(held_turn);
    let calls = state.open.iter().flat_map(|open| open.calls()).filter_map(own);
    let own = turns.chain(calls).map(|news| (state.id.clone(), news));
    let theirs = state.asked.iter().map(|asked| (asked.session.clone(), forwarded(asked)));
    own.chain(theirs).collect()
}

/// Whether a turn that is held should go on, as a question.
fn held_turn(turn: ApprovalId) -> SubagentUpdate {
    let assessment = Assessment {
        risk: Risk::Low,
        reasons: Vec::new(),
        reversible: false,
        preview: "go on with what the end of the daemon cut off".into(),
        subject: CallSubject::default(),
        settled: None,
    };
    SubagentUpdate::Asked {
        call: turn,
        tool: RESUME_TURN.into(),
        input: json!({}),
        assessment: Box::new(assessment),
        expires: None,
    }
}

fn forwarded(asked: &SubagentApproval) -> SubagentUpdate {
    SubagentUpdate::Asked {
        call: asked.question.clone(),
        tool: asked.tool.clone(),
        input: asked.input.clone(),
        assessment: asked.assessment.clone(),
        expires: asked.expires,
    }
}
