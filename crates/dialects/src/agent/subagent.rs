//! Sessions that work for a call: what clients are told and shown of them.

use quintet_kernel::SessionId;
use quintet_kernel::event::SubagentNews;
use serde_json::{Value, json};

use super::book::Book;
use super::encode::status;
use super::stored::{assessed, usage_of, word};
use super::wire::News;

/// What clients of the session for which it works are told.
pub(super) fn news(book: &Book, session: &str, news: &SubagentNews) -> Vec<News> {
    let (plain, native) = match news {
        SubagentNews::Spawned { .. } => ("subagent.spawn", "agent.subagent_spawned"),
        SubagentNews::Progressed { .. } => ("subagent.progress", "agent.subagent_status"),
        SubagentNews::Asked { .. } => ("agent.approval", "agent.approval"),
        SubagentNews::Settled { .. } => return vec![status("running")],
        SubagentNews::Completed { ok: true, .. } => {
            ("subagent.complete", "agent.subagent_completed")
        }
        SubagentNews::Completed { ok: false, .. } => ("subagent.complete", "agent.subagent_failed"),
    };
    let (_, mut data) = told(news);
    data["parentSessionId"] = book.session.as_str().into();
    data["subagentSessionId"] = session.into();
    let mut all = vec![News { plain: Some(plain), native: Some(native), data }];
    if matches!(news, SubagentNews::Asked { .. }) {
        all.push(status("waiting"));
    }
    all
}

/// What stands in the history of the session for which it works.
pub(super) fn stored(
    call: &str,
    session: &SessionId,
    news: &SubagentNews,
) -> (&'static str, Value) {
    let (kind, mut payload) = told(news);
    payload["sessionId"] = session.as_str().into();
    // That of a question names the call that waits.
    if payload.get("toolId").is_none() {
        payload["toolId"] = call.into();
    }
    (kind, payload)
}

fn told(news: &SubagentNews) -> (&'static str, Value) {
    match news {
        SubagentNews::Spawned { task, model } => (
            "subagent.spawn",
            json!({ "task": task, "model": model.as_ref().map(ToString::to_string) }),
        ),
        SubagentNews::Progressed { steps, status } => {
            ("subagent.progress", json!({ "turn": steps, "status": status }))
        }
        SubagentNews::Asked { call, tool, input, assessment, expires } => {
            let mut data = assessed(assessment);
            data["toolName"] = tool.as_str().into();
            data["toolId"] = call.as_str().into();
            data["toolCallId"] = call.as_str().into();
            data["arguments"] = input.clone();
            data["expiresAt"] = json!(expires.map(|at| at.to_string()));
            ("subagent.approval_requested", data)
        }
        SubagentNews::Settled { call, answer } => (
            "subagent.approval_answered",
            json!({ "toolId": call.as_str(), "toolCallId": call.as_str(), "answer": answer.map(word) }),
        ),
        SubagentNews::Completed { result, ok, usage } => (
            "subagent.complete",
            json!({ "result": result, "success": ok, "tokenUsage": usage_of(*usage) }),
        ),
    }
}
