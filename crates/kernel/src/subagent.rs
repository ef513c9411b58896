//! Subagents: how they start and what they report to their parent.
//!
//! The runtime uses these functions to run a subagent for a call; what subagents may do is
//! decided in `session/subagents`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::approval_id::ApprovalId;
use crate::command::{Command, NewMessage, TurnStart};
use crate::event::{ApprovalDecision, Budget, Event, NewSession, SubagentUpdate};
use crate::id::{CallId, QuestionId, SessionId};
use crate::message::{Part, Role};
use crate::model::ModelRef;
use crate::question::{Question, QuestionAnswer};
use crate::session::{Call, CallPhase, State, Subagent, SubagentApproval, TurnStatus};
use crate::time::Time;
use crate::tool::{Assessment, CallSubject, Outcome, Risk};

/// The tool that starts a subagent.
pub const SPAWN_TOOL: &str = "spawn_agent";
/// The tool name in approval requests that are about a turn.
const RESUME_TURN: &str = "resume_turn";
/// The label with the number of sessions above a subagent.
pub(crate) const DEPTH_LABEL: &str = "subagent_depth";
/// Maximum length of a subagent's title, in characters.
const TITLE_CHARS: usize = 50;

const INSTRUCTIONS: &str = "You work on one task for another agent, in the same workspace. Do it on \
    your own; nobody answers questions. End with an answer that says what you found or did: that \
    answer is all the other agent reads.";

/// A task as the model requested it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The task.
    pub text: String,
    /// The model; the parent's if `None`.
    pub model: Option<ModelRef>,
    /// The only tools it may use; all of the parent's if `None`.
    pub tools: Option<Vec<String>>,
    /// The requested limits.
    pub budget: Budget,
}

/// How a subagent starts.
#[derive(Clone, Debug)]
pub struct SubagentStart {
    /// The session, with its tools.
    pub origin: NewSession,
    /// The message with the task.
    pub first_message: Command,
}

/// How a subagent starts; `None` if its delegation was not recorded.
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

/// An update and the session that it is about.
type ParentUpdate = (SessionId, SubagentUpdate);

/// What an event of a subagent means for its parent. `steps` is the number of model calls so
/// far.
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
        // A held turn may have been cancelled; for any other turn the parent ignores this.
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
        Event::QuestionAsked { tool, id, question, expires, .. } => {
            let asked = question_asked(id.clone(), tool.clone(), question, *expires);
            own(vec![progressed("waiting"), asked])
        }
        Event::QuestionAnswered { id, answer, .. } => {
            let answer = match answer {
                QuestionAnswer::Accepted { .. } => Some(ApprovalDecision::Allow),
                QuestionAnswer::Declined => Some(ApprovalDecision::Deny),
                QuestionAnswer::Cancelled => None,
            };
            own(vec![settled(id.clone().into(), answer)])
        }
        // An ended call no longer waits for approval, whether it was answered or not.
        Event::CallCompleted { call, .. } => own(vec![settled(call.clone().into(), None)]),
        // Approval requests of its own subagents are forwarded.
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

/// Updates that the parent missed while the subagent was not followed: approval requests it
/// does not know, and known ones that are closed.
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

/// The result of a subagent: the update for its parent and the outcome that the model reads.
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

/// Open approval requests of a session and its subagents.
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
    let questions = state.open.iter().flat_map(|open| {
        let tool = |call| open.call(call).map(|call| call.request.tool.clone()).unwrap_or_default();
        open.questions.iter().map(move |asked| {
            question_asked(asked.id.clone(), tool(&asked.call), &asked.question, asked.expires)
        })
    });
    let own = turns.chain(calls).chain(questions).map(|news| (state.id.clone(), news));
    let theirs = state.asked.iter().map(|asked| (asked.session.clone(), forwarded(asked)));
    own.chain(theirs).collect()
}

/// The approval request of a held turn.
fn held_turn(turn: ApprovalId) -> SubagentUpdate {
    let assessment = Assessment {
        risk: Risk::Low,
        reasons: Vec::new(),
        reversible: false,
        preview: "continue the turn that a restart of the daemon interrupted".into(),
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

/// A question of a running call, as an approval request.
fn question_asked(
    id: QuestionId,
    tool: String,
    question: &Question,
    expires: Option<Time>,
) -> SubagentUpdate {
    let (input, assessment) = (question.as_input(), Box::new(question.assessment()));
    SubagentUpdate::Asked { call: id.into(), tool, input, assessment, expires }
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
