//! Questions of running calls to the user: asked, answered once, and closed with their call.

use serde::{Deserialize, Serialize};

use crate::command::Approve;
use crate::event::{ApprovalDecision, ApprovalMode, DecidedBy, Event};
use crate::id::{CallId, QuestionId};
use crate::nesting::{LEVELS_LIMIT, depth};
use crate::question::{Question, QuestionAnswer};
use crate::session::advance::APPROVAL_TIMED_OUT;
use crate::session::refusal::Refusal;
use crate::session::state::State;
use crate::session::turn::{Call, CallPhase, OpenTurn};
use crate::stamp::Stamp;
use crate::time::Time;

/// Maximum number of questions of a turn that wait at once.
const OPEN_QUESTIONS_LIMIT: usize = 16;

/// A question that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// The question.
    pub id: QuestionId,
    /// The call that asks.
    pub call: CallId,
    /// What is asked.
    pub question: Box<Question>,
    /// When the question counts as declined.
    pub expires: Option<Time>,
}

/// Asks the user. Nothing happens if the call does not run, if its turn is unattended or being
/// stopped, or if too many questions wait already.
pub(super) fn ask(state: &State, call: &CallId, question: Question, stamp: &Stamp) -> Vec<Event> {
    let Some(open) = state.open.as_ref() else { return Vec::new() };
    let runs = |call: &&Call| matches!(call.phase, CallPhase::Started(..));
    let Some(call) = open.call(call).filter(runs) else { return Vec::new() };
    let possible = open.options.asking != ApprovalMode::Unattended
        && open.stopping.is_none()
        && open.questions.len() < OPEN_QUESTIONS_LIMIT
        && depth(&question.as_input()) <= LEVELS_LIMIT;
    if !possible {
        return Vec::new();
    }
    let patience = open.options.approval_timeout(state.rules.approval.expires);
    vec![Event::QuestionAsked {
        turn: open.id.clone(),
        call: call.id().clone(),
        tool: call.request.tool.clone(),
        id: stamp.id(),
        question: Box::new(question),
        expires: patience.map(|span| stamp.at.after(span)),
    }]
}

/// Applies a client's answer. Refused if the question is closed or the answer does not fit it.
pub(super) fn answer(
    state: &State,
    id: &QuestionId,
    approve: Approve,
    stamp: &Stamp,
) -> Result<Vec<Event>, Refusal> {
    let closed = || Refusal::QuestionClosed(id.clone());
    let open = state.open.as_ref().ok_or_else(closed)?;
    let in_time = |asked: &&OpenQuestion| asked.expires.is_none_or(|expires| stamp.at < expires);
    let asked = open.questions.iter().find(|asked| asked.id == *id).filter(in_time);
    let asked = asked.ok_or_else(closed)?;
    if let Some(turn) = approve.turn.filter(|turn| *turn != open.id) {
        return Err(Refusal::WrongTurn { call: asked.call.clone(), turn });
    }
    let answer = match approve.answer {
        ApprovalDecision::Allow => {
            asked.question.accept(approve.content).map_err(Refusal::InvalidAnswer)?
        }
        ApprovalDecision::Deny => QuestionAnswer::Declined,
    };
    Ok(vec![answered(open, asked, answer, (approve.reason, Some(approve.by)))])
}

/// Closes a question that its call has withdrawn.
pub(super) fn withdraw(state: &State, id: &QuestionId) -> Vec<Event> {
    let open = state.open.iter();
    let asked = open.flat_map(|open| open.questions.iter().map(move |asked| (open, asked)));
    let asked = asked.filter(|(_, asked)| asked.id == *id);
    asked.map(|(open, asked)| cancelled(open, asked)).collect()
}

/// Closes the questions that can no longer be answered: expired ones, and those of calls and turns
/// that have ended.
pub(super) fn closed(open: &OpenTurn, at: Time) -> Vec<Event> {
    let over = |asked: &OpenQuestion| {
        open.stopping.is_some() || open.call(&asked.call).is_none_or(Call::done)
    };
    let close = |asked: &OpenQuestion| {
        if over(asked) {
            return Some(cancelled(open, asked));
        }
        let expired = asked.expires.is_some_and(|expires| at >= expires);
        let why = (Some(APPROVAL_TIMED_OUT.into()), Some(DecidedBy::Clock));
        expired.then(|| answered(open, asked, QuestionAnswer::Declined, why))
    };
    open.questions.iter().filter_map(close).collect()
}

/// Closes all questions: the calls that asked do not survive a restart.
pub(super) fn lost(open: &OpenTurn) -> impl Iterator<Item = Event> {
    open.questions.iter().map(|asked| cancelled(open, asked))
}

fn cancelled(open: &OpenTurn, asked: &OpenQuestion) -> Event {
    answered(open, asked, QuestionAnswer::Cancelled, (None, None))
}

fn answered(
    open: &OpenTurn,
    asked: &OpenQuestion,
    answer: QuestionAnswer,
    (reason, by): (Option<String>, Option<DecidedBy>),
) -> Event {
    let tool = open.call(&asked.call).map(|call| call.request.tool.clone()).unwrap_or_default();
    let (turn, call, id) = (open.id.clone(), asked.call.clone(), asked.id.clone());
    Event::QuestionAnswered { turn, call, tool, id, answer, reason, by }
}
