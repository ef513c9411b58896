//! Encodes runs, their events and commands.

use quintet_kernel::port::RunEntry;
use quintet_kernel::run::{
    Control, ControlMode, RunEvent, RunFile, RunRecord, RunState, RunStatus, Worker, WorkerBinding,
};
use quintet_kernel::{RunId, Time};
use serde_json::{Value, json};

pub(super) fn view(entry: &RunEntry) -> Value {
    let RunEntry { run, heartbeat } = entry;
    let progress = &run.progress;
    let heartbeat = (*heartbeat).max(progress.heartbeat).map(|at| at.to_string());
    let worker = progress.binding.as_ref().map(|WorkerBinding { worker, assignment }| {
        let more = json!({ "last_heartbeat_at": heartbeat, "assignment": assignment });
        merged(whole_worker(worker), more)
    });
    let more = json!({
        "query_message_id": progress.turn,
        "status": progress.status.name(),
        "worker": worker,
        "created_at": progress.created.to_string(),
        "updated_at": progress.updated.to_string(),
        "last_heartbeat_at": heartbeat,
        "last_event_seq": progress.head,
    });
    merged(details(run), more)
}

/// A run for the worker that it is assigned to.
pub(super) fn assigned(run: &RunState) -> Value {
    merged(details(run), json!({ "assignment": run.progress.assignments }))
}

/// The task of a run.
fn details(run: &RunState) -> Value {
    let (brief, progress) = (&run.brief, &run.progress);
    let file = |file: &RunFile| {
        json!({
            "artifact_id": file.artifact,
            "filename": file.filename,
            "content_type": file.content_type,
        })
    };
    json!({
        "run_id": run.id.as_str(),
        "workspace_id": brief.workspace,
        "agent_id": brief.agent,
        "conversation_ref": progress.conversation,
        "query": brief.query,
        "requested_by": brief.requested_by,
        "files": brief.files.iter().map(file).collect::<Vec<_>>(),
        "metadata": brief.metadata,
        "control_mode": progress.mode.name(),
    })
}

/// A worker that has just sent a heartbeat.
pub(super) fn worker(worker: &Worker, workspace: &str, now: Time) -> Value {
    let more = json!({ "workspace_id": workspace, "last_heartbeat_at": now.to_string() });
    merged(whole_worker(worker), more)
}

fn whole_worker(worker: &Worker) -> Value {
    let more = json!({ "user_id": worker.user, "metadata": worker.metadata });
    merged(brief_worker(worker), more)
}

fn brief_worker(worker: &Worker) -> Value {
    json!({
        "worker_id": worker.id,
        "vm_id": worker.vm,
        "session_id": worker.session,
        "agent_id": worker.agent,
        "status": worker.status,
    })
}

/// An object with the members of another one, which replace its own.
fn merged(mut object: Value, more: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut object, more) {
        members.extend(more);
    }
    object
}

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

pub(super) fn event(run: &RunId, record: RunRecord) -> Value {
    let RunRecord { seq, at, event } = record;
    let (kind, source, payload) = typed(run, event);
    json!({
        "seq": seq,
        "timestamp": at.to_string(),
        "event_type": kind,
        "source": source,
        "payload": payload,
    })
}

/// The type, source and payload of an event.
fn typed(run: &RunId, event: RunEvent) -> (String, String, Value) {
    let (kind, source, payload) = match event {
        RunEvent::Reported { kind, source, payload, .. } => return (kind, source, payload.into()),
        RunEvent::Created(brief) => {
            let payload = json!({
                "run_id": run.as_str(),
                "workspace_id": brief.workspace,
                "agent_id": brief.agent,
                "conversation_ref": brief.conversation,
                "status": RunStatus::AwaitingWorker.name(),
                "control_mode": ControlMode::AgentOnly.name(),
            });
            ("run-created", "api", payload)
        }
        RunEvent::Assigned { worker, assignment } => {
            let status = RunStatus::Queued.name();
            let more =
                json!({ "user_id": worker.user, "status": status, "assignment": assignment });
            ("run-worker-assigned", "backend", merged(brief_worker(&worker), more))
        }
        RunEvent::Dispatched { worker, user, turn, conversation, .. } => {
            let payload = json!({
                "worker_id": worker,
                "user_id": user,
                "turn_ref": turn,
                "conversation_ref": conversation,
            });
            ("run-dispatched", "worker", payload)
        }
        RunEvent::Controlled { control, status, mode, bulk } => {
            let mut payload = json!({
                "action": control.action.name(),
                "requested_by": control.requested_by,
                "control_mode": mode.name(),
                "status": status.name(),
                "command_id": control.id.as_str(),
            });
            if bulk {
                payload["bulk"] = true.into();
            }
            ("run-control", "api", payload)
        }
        RunEvent::Heartbeat { worker, .. } => ("worker-heartbeat", "worker", brief_worker(&worker)),
        RunEvent::Lost { worker, assignment, losses, status } => {
            let payload = json!({
                "worker_id": worker,
                "assignment": assignment,
                "losses": losses,
                "status": status.name(),
                "reason": "heartbeats stopped",
            });
            ("run-worker-lost", "backend", payload)
        }
    };
    (kind.into(), source.into(), payload)
}
