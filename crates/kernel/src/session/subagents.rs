//! Sessions that work for calls of this one: what is heard of them.

use crate::event::{Event, SubagentNews};
use crate::id::{CallId, SessionId};
use crate::model::Usage;
use crate::session::state::{Asked, Data, State, Subagent};
use crate::session::turn::CallPhase;

/// Has a session work for a call; nothing happens if there are enough already.
pub(super) fn spawn(
    state: &State,
    (call, session): (CallId, SessionId),
    spawned: SubagentNews,
    most: usize,
) -> Vec<Event> {
    match state.subagents.iter().filter(|known| !known.over).count() {
        working if working >= most => Vec::new(),
        _ => heard(state, call, session, spawned),
    }
}

/// Takes news of a session, if its call still runs and it is news.
pub(super) fn heard(
    state: &State,
    call: CallId,
    session: SessionId,
    news: SubagentNews,
) -> Vec<Event> {
    let Some(open) = &state.open else { return Vec::new() };
    let runs = open.call(&call).is_some_and(|call| matches!(call.phase, CallPhase::Started(..)));
    let knows = |asked: &CallId| {
        state.asked.iter().any(|known| known.session == session && known.call == *asked)
    };
    let is_news = match &news {
        SubagentNews::Asked { call, .. } => !knows(call),
        SubagentNews::Settled { call, .. } => knows(call),
        SubagentNews::Spawned { .. }
        | SubagentNews::Progressed { .. }
        | SubagentNews::Completed { .. } => true,
    };
    match runs && is_news {
        true => vec![Event::Subagent { turn: open.id.clone(), call, session, news }],
        false => Vec::new(),
    }
}

/// Remembers news; gives what the session cost, which is its parent's to pay.
pub(super) fn note(
    state: &mut Data,
    (via, session): (&CallId, &SessionId),
    news: &SubagentNews,
) -> Option<Usage> {
    let (via, session) = (via.clone(), session.clone());
    match news {
        SubagentNews::Spawned { .. } => {
            state.subagents.push(Subagent { call: via, session, over: false });
        }
        SubagentNews::Progressed { .. } => {}
        SubagentNews::Asked { call, tool, input, assessment, expires } => {
            let (call, tool, input) = (call.clone(), tool.clone(), input.clone());
            let (assessment, expires) = (assessment.clone(), *expires);
            state.asked.push(Asked { via, session, call, tool, input, assessment, expires });
        }
        SubagentNews::Settled { call, .. } => {
            state.asked.retain(|known| known.session != session || known.call != *call);
        }
        SubagentNews::Completed { usage, .. } => {
            if let Some(known) = state.subagents.iter_mut().find(|known| known.call == via) {
                known.over = true;
            }
            state.asked.retain(|known| known.via != via);
            return Some(*usage);
        }
    }
    None
}
