//! Sessions that work for calls of this one: which may begin, and what is heard of them.

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

/// A session that works, or worked, for a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subagent {
    /// The call.
    pub call: CallId,
    /// The turn.
    pub turn: TurnId,
    /// The session.
    pub session: SessionId,
    /// What it is to do.
    pub task: String,
    /// The model, where one was chosen for it.
    pub model: Option<ModelRef>,
    /// What it was given to work with, where that was written down.
    pub delegation: Option<Box<Delegation>>,
    /// Whether the call is over, so that another may begin in its place.
    pub over: bool,
    /// Whether it is known what came of it, and so that nothing runs for it any more.
    pub completed: bool,
}

/// All subagents of a session, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubagentList {
    all: Vec<Subagent>,
    /// The subagents that are not over or not completed.
    unfinished: Vec<usize>,
}

impl SubagentList {
    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Subagent> {
        self.all.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there never was one.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The one that works, or did last, for a call of the turn that had a subagent last.
    pub fn of(&self, call: &CallId) -> Option<&Subagent> {
        let turn = &self.all.last()?.turn;
        let mut of_turn = self.all.iter().rev().take_while(|known| known.turn == *turn);
        of_turn.find(|known| {
            #[cfg(test)]
            crate::session::tests::scale::visited();
            known.call == *call
        })
    }

    /// The subagents whose call is over and that may still be running: they are to be stopped.
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

    /// Changes those of a call that are not finished.
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

/// Has a session work for a call. Where none may, the call is over, and the model is told why; nothing
/// happens if one works for it already.
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

/// What a subagent is given: no more than this session has, and what it has left of its turn.
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

/// What another subagent may take of the tokens that are left of a turn: what those at work were given
/// is theirs, and the rest is shared with the calls of this step that have none yet.
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

/// Takes news of a session, if its call still runs and it is news. What came of it is news once, also
/// if the call is over: it may have been stopped.
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
        // One begins by a decision of its own.
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

/// Remembers news; gives what the session cost, which is its parent's to pay, once.
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

/// Remembers that a call is over: whoever worked for it gives its place to another.
pub(super) fn call_ended(state: &mut SessionData, call: &CallId) {
    state.asked.retain(|asked| asked.via != *call);
    state.subagents.change(call, |known| known.over = true);
}
