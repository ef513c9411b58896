//! The open approval requests, each with a digest of what is shown.

use quintet_kernel::session::{Call, CallPhase};
use quintet_kernel::{ApprovalId, State, Time};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::encode::assessment;

/// The open questions of a session and of its subagents.
pub(super) fn open(state: &State) -> Vec<Value> {
    let turn = state.open.as_ref();
    let calls = turn.into_iter().flat_map(|turn| turn.calls());
    let own = calls.filter_map(|call| asked(state, call));
    let held = turn.and_then(|turn| turn.question()).map(|question| held(state, &question));
    let of_others = state.asked.iter().map(|asked| {
        let shown = json!({
            "id": asked.question.as_str(), "asker": asked.session.as_str(), "tool": asked.tool,
            "input": asked.input, "assessment": assessment(&asked.assessment),
        });
        finish(state, shown, asked.expires)
    });
    let questions = turn.into_iter().flat_map(|turn| &turn.questions).map(|asked| {
        let call = turn.and_then(|turn| turn.call(&asked.call));
        let shown = json!({
            "id": asked.id.as_str(), "asker": state.id.as_str(),
            "tool": call.map(|call| &call.request.tool), "input": asked.question.as_input(),
            "assessment": assessment(&asked.question.assessment()),
        });
        finish(state, shown, asked.expires)
    });
    own.chain(held).chain(questions).chain(of_others).collect()
}

/// The digest of an open question; `None` if it is not open any more.
pub(super) fn digest(state: &State, question: &ApprovalId) -> Option<String> {
    let shown = open(state).into_iter().find(|shown| shown["id"] == question.as_str())?;
    shown["digest"].as_str().map(Into::into)
}

fn asked(state: &State, call: &Call) -> Option<Value> {
    let CallPhase::Asked { assessment: assessed, expires } = &call.phase else { return None };
    let shown = json!({
        "id": call.id().as_str(), "asker": state.id.as_str(), "tool": call.request.tool,
        "input": call.request.input, "assessment": assessment(assessed),
    });
    Some(finish(state, shown, *expires))
}

/// The question whether to continue a turn that a crash interrupted.
fn held(state: &State, question: &ApprovalId) -> Value {
    let shown = json!({
        "id": question.as_str(), "asker": state.id.as_str(), "tool": null, "input": null,
        "assessment": {
            "risk": "medium", "reversible": false, "similar": null, "preview": "",
            "reasons": ["the daemon stopped in the middle of this turn"],
        },
    });
    finish(state, shown, None)
}

/// Adds the digest, and then fields that are not covered by it: those that help to find the session, and
/// `form` for a question of a running call, whose answer has more than yes or no.
fn finish(state: &State, mut shown: Value, expires: Option<Time>) -> Value {
    shown["workspace"] = json!(state.workspace);
    shown["digest"] = hex::encode(Sha256::digest(shown.to_string())).into();
    let id = shown["id"].as_str().and_then(ApprovalId::parse);
    shown["form"] = matches!(id, Some(ApprovalId::Question(_))).into();
    shown["session"] = state.id.as_str().into();
    shown["title"] = state.summary().title.into();
    shown["expires"] = json!(expires.map(Time::micros));
    shown
}
