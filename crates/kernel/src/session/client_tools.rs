//! Tools that clients run: validation, call details and timeouts.

use crate::event::{ClientCallInfo, Event};
use crate::message::Part;
use crate::session::Refusal;
use crate::session::state::State;
use crate::session::turn::{Call, OpenTurn};
use crate::stamp::Stamp;
use crate::tool::{Ending, Outcome, Placement, Risk, ToolSpec};
use crate::toolset::Toolset;

/// Maximum length of the model's text that is sent with a call, in bytes.
const CALL_REASON_BYTES: usize = 500;

/// Sets the tools of a session.
pub(super) fn set_tools(state: &State, toolset: Toolset) -> Result<Vec<Event>, Refusal> {
    check_tools(state, &toolset)?;
    let same = toolset == state.toolset;
    Ok(if same { Vec::new() } else { vec![Event::ToolsChosen(toolset)] })
}

/// Refuses tools that are not valid.
pub(super) fn check_tools(state: &State, toolset: &Toolset) -> Result<(), Refusal> {
    let taken = |name: &str| state.rules.tool(name).is_some() && toolset.includes(name);
    let clash = toolset.client.iter().find(|tool| taken(&tool.name));
    let clash = clash.map(|tool| format!("the daemon has a tool {} itself", tool.name));
    toolset.validation_error().or(clash).map_or(Ok(()), |fault| Err(Refusal::BadTools(fault)))
}

/// What a client needs to know about a call; `None` if the daemon runs it.
pub(super) fn client_call_info(
    state: &State,
    (open, call): (&OpenTurn, &Call),
    tool: &ToolSpec,
    stamp: &Stamp,
) -> Option<ClientCallInfo> {
    if tool.placement == Placement::Daemon {
        return None;
    }
    let offered = state.toolset.client_tool(&tool.name);
    let risk = offered.map_or(Risk::Medium, |tool| tool.risk);
    let front_end = offered.and_then(|tool| tool.front_end.clone());
    let handed = open.calls().iter().filter(|other| !other.done());
    let handed = handed.map(|call| (call.request.tool.as_str(), &call.request.input));
    let expires = state.toolset.timeout(handed).map(|span| stamp.at.after(span));
    Some(ClientCallInfo { risk, reason: model_text_for_call(state, call), expires, front_end })
}

/// The outcome of a call that no client finished in time.
pub(super) fn timed_out() -> Outcome {
    Outcome::ended(Ending::TimedOut, "Tool execution timed out.")
}

/// The model's text before a call.
fn model_text_for_call(state: &State, call: &Call) -> Option<String> {
    let asks = |part: &Part| matches!(part, Part::Call { call: id, .. } if id == call.id());
    let message = state.messages.iter().rev().find(|message| message.parts.iter().any(asks))?;
    let text = message.text();
    let text = text.trim();
    let cut = &text[..text.floor_char_boundary(CALL_REASON_BYTES)];
    (!cut.is_empty()).then(|| cut.into())
}
