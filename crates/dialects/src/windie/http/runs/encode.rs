//! How runs, their events and commands are shown.

use quintet_kernel::port::RunEntry;
use quintet_kernel::run::{
    Control, ControlMode, RunDetails, RunEvent, RunFile, RunRecord, RunState, RunStatus, Worker,
    WorkerBinding,
};
use quintet_kernel::{RunId, Time};
use serde_json::{Value, json};

/// A run.
pub(super) fn view(entry: &RunEntry) -> Value {
    let RunEntry { run, heartbeat } = entry;
    let (brief, progress) = (&run.brief, &run.progress);
    let heartbeat = (*heartbeat).max(progress.heartbeat);
    json!({
        "run_id": run.id.as_str(),
        "workspace_id": brief.workspace,
        "agent_id": brief.agent,
        "conversation_ref": progress.conversation,
        "query_message_id": progress.turn,
        "query": brief.query,
        "requested_by": brief.requested_by,
        "files": files(&brief.files),
        "metadata": brief.metadata,
        "status": progress.status.name(),
        "control_mode": progress.mode.name(),
        "worker": progress.binding.as_ref().map(|binding| bound(binding, heartbeat)),
        "created_at": progress.created.to_string(),
        "updated_at": progress.updated.to_string(),
        "last_heartbeat_at": time(heartbeat),
        "last_event_seq": progress.head,
    })
}

fn bound(binding: &WorkerBinding, heartbeat: Option<Time>) -> Value {
    let WorkerBinding { worker, assignment } = binding;
    json!({
        "worker_id": worker.id,
        "vm_id": worker.vm,
        "session_id": worker.session,
        "agent_id": worker.agent,
        "user_id": worker.user,
        "status": worker.status,
        "metadata": worker.metadata,
        "last_heartbeat_at": time(heartbeat),
        "assignment": assignment,
    })
}

fn time(at: Option<Time>) -> Option<String> {
    at.map(|at| at.to_string())
}

fn files(files: &[RunFile]) -> Vec<Value> {
    let shown = |file: &RunFile| {
        json!({
            "artifact_id": file.artifact,
            "filename": file.filename,
            "content_type": file.content_type,
        })
    };
    files.iter().map(shown).collect()
}

/// A worker that has just been heard of.
pub(super) fn worker(worker: &Worker, workspace: &str, now: Time) -> Value {
    json!({
        "worker_id": worker.id,
        "workspace_id": workspace,
        "vm_id": worker.vm,
        "user_id": worker.user,
        "session_id": worker.session,
        "agent_id": worker.agent,
        "status": worker.status,
        "metadata": worker.metadata,
        "last_heartbeat_at": now.to_string(),
    })
}

/// A run for the worker that is to begin it.
pub(super) fn assigned(run: &RunState) -> Value {
    let (brief, progress) = (&run.brief, &run.progress);
    json!({
        "run_id": run.id.as_str(),
        "workspace_id": brief.workspace,
        "agent_id": brief.agent,
        "conversation_ref": progress.conversation,
        "query": brief.query,
        "requested_by": brief.requested_by,
        "files": files(&brief.files),
        "metadata": brief.metadata,
        "control_mode": progress.mode.name(),
        "assignment": progress.assignments,
    })
}

/// A command for a worker.
pub(super) fn command(run: &RunId, control: &Control) -> Value {
    json!({
        "run_id": run.as_str(),
        "command_id": control.id.as_str(),
        "action": control.action.name(),
        "requested_by": control.requested_by,
        "control_mode": control.action.mode().map(ControlMode::name),
        "created_at": control.at.to_string(),
    })
}

/// An event of a run.
pub(super) fn event(run: &RunId, record: RunRecord) -> Value {
    let RunRecord { seq, at, event } = record;
    let (kind, source, payload) = match event {
        RunEvent::Created(brief) => shown("run-created", "api", created(run, &brief)),
        RunEvent::Assigned { worker, assignment } => {
            shown("run-worker-assigned", "backend", assignment_of(&worker, assignment))
        }
        RunEvent::Dispatched { worker, user, turn, conversation, .. } => {
            let payload = json!({
                "worker_id": worker,
                "user_id": user,
                "turn_ref": turn,
                "conversation_ref": conversation,
            });
            shown("run-dispatched", "worker", payload)
        }
        RunEvent::Controlled { control, status, mode, bulk } => {
            shown("run-control", "api", controlled(&control, status, mode, bulk))
        }
        RunEvent::Heartbeat { worker, .. } => {
            let payload = json!({
                "worker_id": worker.id,
                "vm_id": worker.vm,
                "session_id": worker.session,
                "agent_id": worker.agent,
                "status": worker.status,
            });
            shown("worker-heartbeat", "worker", payload)
        }
        RunEvent::Reported { kind, source, payload, .. } => (kind, source, Value::Object(payload)),
        RunEvent::Lost { worker, assignment, losses, status } => {
            let payload = json!({
                "worker_id": worker,
                "assignment": assignment,
                "losses": losses,
                "status": status.name(),
                "reason": "heartbeats stopped",
            });
            shown("run-worker-lost", "backend", payload)
        }
    };
    json!({
        "seq": seq,
        "timestamp": at.to_string(),
        "event_type": kind,
        "source": source,
        "payload": payload,
    })
}

fn shown(kind: &str, source: &str, payload: Value) -> (String, String, Value) {
    (kind.to_owned(), source.to_owned(), payload)
}

fn created(run: &RunId, brief: &RunDetails) -> Value {
    json!({
        "run_id": run.as_str(),
        "workspace_id": brief.workspace,
        "agent_id": brief.agent,
        "conversation_ref": brief.conversation,
        "status": RunStatus::AwaitingWorker.name(),
        "control_mode": ControlMode::AgentOnly.name(),
    })
}

fn assignment_of(worker: &Worker, assignment: u64) -> Value {
    json!({
        "worker_id": worker.id,
        "user_id": worker.user,
        "vm_id": worker.vm,
        "session_id": worker.session,
        "agent_id": worker.agent,
        "status": RunStatus::Queued.name(),
        "assignment": assignment,
    })
}

fn controlled(control: &Control, status: RunStatus, mode: ControlMode, bulk: bool) -> Value {
    let mut payload = json!({
        "action": control.action.name(),
        "requested_by": control.requested_by,
        "control_mode": mode.name(),
        "status": status.name(),
        "command_id": control.id.as_str(),
    });
    if bulk && let Some(members) = payload.as_object_mut() {
        members.insert("bulk".into(), true.into());
    }
    payload
}
