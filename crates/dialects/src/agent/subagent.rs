//! Subagents: notifications and stored events about them.

use quintet_kernel::event::SubagentUpdate;
use quintet_kernel::{SessionId, Time};
use serde_json::{Value, json};

use super::context_detail::summary;
use super::encode::status;
use super::session_context::SessionContext;
use super::stored_event::{assessment_json, decision_name, usage_of};
use super::wire::Notification;

/// The call, the subagent's session, and the time of the update.
type SubagentRef<'a> = (&'a str, &'a SessionId, Time);

/// Notifications for clients of the parent session.
pub(super) fn notifications(
    context: &SessionContext,
    of: SubagentRef<'_>,
    news: &SubagentUpdate,
) -> Vec<Notification> {
    let (json_rpc, legacy) = match news {
        SubagentUpdate::Spawned { .. } => ("subagent.spawn", "agent.subagent_spawned"),
        SubagentUpdate::Progressed { .. } => ("subagent.progress", "agent.subagent_status"),
        SubagentUpdate::Asked { .. } => ("agent.approval", "agent.approval"),
        SubagentUpdate::Settled { .. } => return vec![status("running")],
        SubagentUpdate::Completed { ok: true, .. } => {
            ("subagent.complete", "agent.subagent_completed")
        }
        SubagentUpdate::Completed { ok: false, .. } => {
            ("subagent.complete", "agent.subagent_failed")
        }
    };
    let (_, mut data) = with_both_names(context, of, news);
    data["parentSessionId"] = context.session.as_str().into();
    let mut all = vec![Notification { json_rpc: Some(json_rpc), legacy: Some(legacy), data }];
    if matches!(news, SubagentUpdate::Asked { .. }) {
        all.push(status("waiting"));
    }
    all
}

/// The stored event in the history of the parent session.
pub(super) fn stored(
    context: &SessionContext,
    of: SubagentRef<'_>,
    news: &SubagentUpdate,
) -> (&'static str, Value) {
    let (kind, mut payload) = with_both_names(context, of, news);
    payload["sessionId"] = of.1.as_str().into();
    (kind, payload)
}

/// An update of a subagent, with the field names of both servers.
fn with_both_names(
    context: &SessionContext,
    of: SubagentRef<'_>,
    news: &SubagentUpdate,
) -> (&'static str, Value) {
    let (call, session, at) = of;
    let (kind, mut data) = with_text(context, (session, at), news);
    data["subagentSessionId"] = session.as_str().into();
    // An approval request has the id of the call that waits for it.
    if data.get("toolId").is_none() {
        data["toolId"] = call.into();
        data["toolCallId"] = call.into();
    }
    (kind, data)
}

fn with_text(
    context: &SessionContext,
    of: (&SessionId, Time),
    news: &SubagentUpdate,
) -> (&'static str, Value) {
    let (duration, turns) = context.subagent(of.0, of.1);
    match news {
        SubagentUpdate::Spawned { task, model, .. } => (
            "subagent.spawn",
            json!({
                "task": task,
                "model": model.as_ref().map(ToString::to_string),
                "spawnType": "subsession",
                "workingDirectory": context.workspace,
            }),
        ),
        SubagentUpdate::Progressed { steps, status } => {
            let data = json!({ "turn": steps, "currentTurn": steps, "status": status });
            ("subagent.progress", data)
        }
        SubagentUpdate::Asked { call, tool, input, assessment, expires } => {
            let mut data = assessment_json(assessment);
            data["toolName"] = tool.as_str().into();
            data["toolId"] = call.as_str().into();
            data["toolCallId"] = call.as_str().into();
            data["arguments"] = input.clone();
            data["expiresAt"] = json!(expires.map(|at| at.to_rfc3339_millis()));
            ("subagent.approval_requested", data)
        }
        SubagentUpdate::Settled { call, answer } => (
            "subagent.approval_answered",
            json!({ "toolId": call.as_str(), "toolCallId": call.as_str(), "answer": answer.map(decision_name) }),
        ),
        SubagentUpdate::Completed { result, ok, usage } => (
            "subagent.complete",
            json!({
                "result": result,
                "success": ok,
                "tokenUsage": usage_of(*usage),
                "totalTokenUsage": usage_of(*usage),
                "resultSummary": summary(result),
                "fullOutput": result,
                "error": (!ok).then_some(result),
                "totalTurns": turns,
                "duration": duration,
            }),
        ),
    }
}
