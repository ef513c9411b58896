//! Sessions, models and changes as the page shows them.

use quintet_kernel::change::{FileChange, UnrecordedChange};
use quintet_kernel::model::ModelInfo;
use quintet_kernel::port::{Changeset, Finding, SessionHit, Severity};
use quintet_kernel::session::{Turn, TurnStatus};
use quintet_kernel::{SessionSummary, State, Status, Time};
use serde_json::{Value, json};

use super::encode::usage;

/// A session as lists show it.
pub(super) fn summary(summary: &SessionSummary) -> Value {
    json!({
        "id": summary.id.as_str(), "created": summary.created.micros(), "updated": summary.updated.micros(),
        "status": status(summary), "title": title(summary), "workspace": summary.workspace,
        "model": summary.model.as_ref().map(ToString::to_string), "head": summary.head,
        "last_prompt": summary.last_prompt, "last_answer": summary.last_answer,
        "messages": summary.messages, "usage": usage(summary.usage), "context": summary.context,
        "error": summary.error, "parent": summary.labels.get("parent"),
        "forked": summary.forked.as_ref().map(|fork| json!({
            "parent": fork.parent.as_str(), "at": fork.at,
        })),
    })
}

/// An opened session: the state that does not follow from the last page of its events.
pub(super) fn session(state: &State) -> Value {
    let queue = state.turns.iter().filter(|turn| turn.status == TurnStatus::Pending);
    json!({
        "card": summary(&state.summary()), "model": state.current_model().to_string(),
        "window": state.window(), "turns": state.turns.iter().map(turn).collect::<Vec<_>>(),
        "queue": queue.map(|turn| turn.id.as_str()).collect::<Vec<_>>(),
        "remembered": state.remembered.iter().map(|it| json!({
            "tool": it.tool, "answer": match it.answer {
                quintet_kernel::event::ApprovalDecision::Allow => "approve",
                quintet_kernel::event::ApprovalDecision::Deny => "deny",
            },
        })).collect::<Vec<_>>(),
    })
}

fn turn(turn: &Turn) -> Value {
    json!({
        "id": turn.id.as_str(), "begins": turn.begins,
        "status": match turn.status {
            TurnStatus::Pending => "pending",
            TurnStatus::Running => "running",
            TurnStatus::WaitingApproval => "waiting",
            TurnStatus::Succeeded => "succeeded",
            TurnStatus::Failed => "failed",
            TurnStatus::Cancelled => "cancelled",
        },
        "started": turn.started.map(Time::micros), "completed": turn.completed.map(Time::micros),
        "verified": turn.verified, "undone": turn.reverted, "changed": !turn.changes.is_empty(),
    })
}

pub(super) fn status(summary: &SessionSummary) -> &'static str {
    match summary.status {
        Status::Active if summary.open => "running",
        Status::Active => "idle",
        Status::WaitingApproval => "waiting",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
    }
}

pub(super) fn title(summary: &SessionSummary) -> &str {
    summary.labels.get("title").unwrap_or(&summary.title)
}

/// What a turn did to files.
pub(super) fn changes(set: &Changeset) -> Value {
    json!({
        "files": set.files.iter().map(file_change).collect::<Vec<_>>(), "diff": set.diff,
        "unrecorded": set.unrecorded.iter().map(gap).collect::<Vec<_>>(), "undone": set.reverted,
    })
}

fn file_change(change: &FileChange) -> Value {
    let kind = match (&change.before, &change.after) {
        (None, _) => "created",
        (Some(_), None) => "deleted",
        (Some(_), Some(_)) => "changed",
    };
    json!({ "path": change.path, "change": kind })
}

fn gap(gap: &UnrecordedChange) -> Value {
    json!({ "path": gap.path, "paths": gap.paths, "reason": gap.reason })
}

/// A model that can be chosen.
pub(super) fn model(listed: &ModelInfo) -> Value {
    json!({
        "id": listed.model.to_string(), "label": listed.about.label, "usable": listed.usable,
        "window": listed.profile.context_window, "tools": listed.profile.tools,
        "images": listed.profile.inputs.contains(&quintet_kernel::message::MediaKind::Image),
    })
}

/// What a check of the daemon found.
pub(super) fn finding(finding: &Finding) -> Value {
    json!({
        "about": finding.about, "message": finding.message, "remedy": finding.remedy,
        "severity": match finding.severity {
            Severity::Ok => "ok",
            Severity::Warning => "warning",
            Severity::Error => "error",
        },
    })
}

/// A message that a search found. The excerpt is cut where words of the query begin and end; every
/// second piece is such a word.
pub(super) fn hit(hit: &SessionHit) -> Value {
    let (mut pieces, mut end) = (Vec::new(), 0);
    for found in &hit.matches {
        pieces.push(hit.excerpt.get(end..found.start).unwrap_or_default());
        pieces.push(hit.excerpt.get(found.clone()).unwrap_or_default());
        end = found.end;
    }
    pieces.push(hit.excerpt.get(end..).unwrap_or_default());
    json!({
        "session": hit.session.as_str(), "title": hit.title, "workspace": hit.workspace,
        "seq": hit.seq, "at": hit.at.micros(), "excerpt": pieces,
    })
}
