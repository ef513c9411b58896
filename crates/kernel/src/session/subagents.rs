//! Subagents of a session: which may start, and what they report.

use serde::{Deserialize, Serialize};

use crate::approval_id::ApprovalId;
use crate::event::{Budget, Delegation, Event, RareOptions, SubagentUpdate, TurnOptions};
use crate::id::{CallId, SessionId, TurnId};
use crate::model::{ModelRef, Usage};
use crate::session::state::{SessionData, State, SubagentApproval};
use crate::session::turn::{Call, CallPhase, OpenTurn};
use crate::stamp::Stamp;
use crate::subagent::{SPAWN_TOOL, Task};
use crate::tool::Outcome;
use crate::toolset::Toolset;

/// A subagent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subagent {
    /// The call.
    pub call: CallId,
    /// The turn.
    pub turn: TurnId,
    /// The session.
    pub session: SessionId,
    /// The task.
    pub task: String,
    /// The model, if one was chosen for it.
    pub model: Option<ModelRef>,
    /// The subagent's tools and limits, if they were recorded.
    pub delegation: Option<Box<Delegation>>,
    /// True if the call has ended, so that another subagent may start in its place.
    pub over: bool,
    /// True if the result is known, so that nothing runs for it any more.
    pub completed: bool,
}

/// All subagents of a session, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubagentList {
    all: Vec<Subagent>,
    /// Subagents that are not `over` or not `completed`.
    unfinished: Vec<usize>,
}

impl SubagentList {
    /// All subagents, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Subagent> {
        self.all.iter()
    }

    /// Number of subagents.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// True if the session never had a subagent.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The latest subagent of a call of the last turn with subagents.
    pub fn of(&self, call: &CallId) -> Option<&Subagent> {
        let turn = &self.all.last()?.turn;
        let mut of_turn = self.all.iter().rev().take_while(|known| known.turn == *turn);
        of_turn.find(|known| {
            #[cfg(test)]
            crate::session::tests::scale::visited();
            known.call == *call
        })
    }

    /// Subagents whose call has ended and that may still run: they must be stopped.
    pub fn orphans(&self) -> impl Iterator<Item = &Subagent> {
        self.unfinished().filter(|known| known.over)
    }

    fn working(&self) -> usize {
        self.unfinished().filter(|known| !known.over).count()
    }

    fn unfinished(&self) -> impl Iterator<Item = &Subagent> {
        self.unfinished.iter().map(|n| &self.all[*n])
    }

    fn push(&mut self, subagent: Subagent) {
        self.unfinished.push(self.all.len());
        self.all.push(subagent);
    }

    /// Changes the unfinished subagents of a call.
    fn change(&mut self, call: &CallId, change: impl Fn(&mut Subagent)) {
        for n in &self.unfinished {
            if self.all[*n].call == *call {
                change(&mut self.all[*n]);
            }
        }
        let all = &self.all;
        self.unfinished.retain(|n| !(all[*n].over && all[*n].completed));
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Starts a subagent for a call. If policy refuses, the call ends and the model reads why;
/// nothing happens if the call has a subagent already.
pub(super) fn spawn_subagent(
    state: &State,
    call: &CallId,
    (session, task): (SessionId, Task),
    stamp: &Stamp,
) -> Vec<Event> {
    let Some((open, call)) = running_call(state, call).filter(|(open, _)| open.stopping.is_none())
    else {
        return Vec::new();
    };
    if state.subagents.of(call.id()).is_some() {
        return Vec::new();
    }
    match delegate(state, open, &task) {
        Ok(delegation) => {
            let model = task.model.unwrap_or_else(|| state.current_model().clone());
            let (model, delegation) = (Some(model), Some(Box::new(delegation)));
            let news = SubagentUpdate::Spawned { task: task.text, model, delegation };
            let (turn, call) = (open.id.clone(), call.id().clone());
            vec![Event::Subagent { turn, call, session, news }]
        }
        Err(why) => vec![open.completed(call, Outcome::failure(why), stamp)],
    }
}

/// The tools and limits of a subagent: at most those of this session and the rest of its turn.
fn delegate(state: &State, open: &OpenTurn, task: &Task) -> Result<Delegation, String> {
    let limits = state.rules.subagents;
    let depth = state.depth + 1;
    if depth > limits.depth {
        return Err("subagents of subagents go no deeper here; do it yourself".into());
    }
    let may = |name: &&str| *name != SPAWN_TOOL || depth < limits.depth;
    let has: Vec<String> = state.daemon_tool_names().filter(may).map(String::from).collect();
    let daemon = match &task.tools {
        None => has,
        Some(wanted) => match wanted.iter().find(|name| !has.contains(name)) {
            Some(unknown) => return Err(format!("there is no tool {unknown} to give")),
            None => wanted.clone(),
        },
    };
    if state.subagents.working() >= limits.at_once {
        return Err(format!("{} subagents work already; wait for one of them", limits.at_once));
    }
    let left = Budget { tokens: Some(token_share(state, open)), ..Budget::default() };
    let account = open.options.account().cloned();
    let options = TurnOptions {
        asking: open.options.asking,
        answer_within_ms: open.options.answer_within_ms,
        budget: Some(Box::new(task.budget.within(limits.budget).within(left))),
        more: RareOptions { account, ..RareOptions::default() }.unless_empty(),
        ..TurnOptions::default()
    };
    let toolset = Toolset { daemon: Some(daemon), ..Toolset::default() };
    Ok(Delegation { depth, toolset, options })
}

/// Tokens for another subagent: the turn's remaining tokens, without those given to running
/// subagents, shared with the calls of this step that have none yet.
fn token_share(state: &State, open: &OpenTurn) -> u64 {
    let at_work = |known: &&Subagent| !known.completed && known.turn == open.id;
    let given = |known: &Subagent| known.delegation.as_ref()?.options.budget.as_ref()?.tokens;
    let given = state.subagents.unfinished().filter(at_work).filter_map(given);
    let taken = given.fold(open.usage.total(), u64::saturating_add);
    let left = open.limits(&state.rules).tokens.saturating_sub(taken);
    let waits = |call: &&Call| {
        let delegates = call.request.tool == SPAWN_TOOL && !call.done();
        delegates && state.subagents.of(call.id()).is_none()
    };
    left / (open.calls().iter().filter(waits).count() as u64).max(1)
}

/// Records an update, if its call still runs and it is new. A result is recorded once, even
/// after the call has ended.
pub(super) fn on_subagent_update(
    state: &State,
    call: CallId,
    session: SessionId,
    news: SubagentUpdate,
) -> Vec<Event> {
    let knows = |asked: &ApprovalId| {
        state.asked.iter().any(|known| known.session == session && known.question == *asked)
    };
    let turn = || running_call(state, &call).map(|(open, _)| open.id.clone());
    let turn = match &news {
        // `Spawned` is only recorded by `spawn_subagent`.
        SubagentUpdate::Spawned { .. } => None,
        SubagentUpdate::Progressed { .. } => turn(),
        SubagentUpdate::Asked { call, .. } => turn().filter(|_| !knows(call)),
        SubagentUpdate::Settled { call, .. } => turn().filter(|_| knows(call)),
        SubagentUpdate::Completed { .. } => {
            let mut unfinished = state.subagents.unfinished().filter(|known| !known.completed);
            unfinished.find(|known| known.call == call).map(|known| known.turn.clone())
        }
    };
    turn.map(|turn| Event::Subagent { turn, call, session, news }).into_iter().collect()
}

fn running_call<'a>(state: &'a State, call: &CallId) -> Option<(&'a OpenTurn, &'a Call)> {
    let open = state.open.as_ref()?;
    let call = open.call(call).filter(|call| matches!(call.phase, CallPhase::Started(..)))?;
    Some((open, call))
}

/// Applies an update; returns the subagent's cost, once, which its parent pays.
pub(super) fn apply_subagent_update(
    state: &mut SessionData,
    (turn, via, session): (&TurnId, &CallId, &SessionId),
    news: &SubagentUpdate,
) -> Option<Usage> {
    let (call, session) = (via.clone(), session.clone());
    match news {
        SubagentUpdate::Spawned { task, model, delegation } => {
            let (turn, task, model) = (turn.clone(), task.clone(), model.clone());
            let (delegation, over, completed) = (delegation.clone(), false, false);
            state.subagents.push(Subagent {
                call,
                turn,
                session,
                task,
                model,
                delegation,
                over,
                completed,
            });
        }
        SubagentUpdate::Progressed { .. } => {}
        SubagentUpdate::Asked { call: question, tool, input, assessment, expires } => {
            let (question, tool, input) = (question.clone(), tool.clone(), input.clone());
            let (assessment, expires) = (assessment.clone(), *expires);
            let via = call;
            state.asked.push(SubagentApproval {
                via,
                session,
                question,
                tool,
                input,
                assessment,
                expires,
            });
        }
        SubagentUpdate::Settled { call: question, .. } => {
            state.asked.retain(|known| known.session != session || known.question != *question);
        }
        SubagentUpdate::Completed { usage, .. } => {
            state.asked.retain(|known| known.via != call);
            let first = state.subagents.unfinished().any(|it| it.call == call && !it.completed);
            state.subagents.change(&call, |known| (known.over, known.completed) = (true, true));
            return first.then_some(*usage);
        }
    }
    None
}

/// Applies the end of a call: its subagent no longer counts as running.
pub(super) fn call_ended(state: &mut SessionData, call: &CallId) {
    state.asked.retain(|asked| asked.via != *call);
    state.subagents.change(call, |known| known.over = true);
}
