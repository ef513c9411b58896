//! Sessions, models and changes as the page shows them.

use quintet_kernel::change::{FileChange, Gap};
use quintet_kernel::model::Listed;
use quintet_kernel::port::{Changeset, SessionHit};
use quintet_kernel::session::{Turn, TurnStatus};
use quintet_kernel::{Card, State, Status, Time};
use serde_json::{Value, json};

use super::encode::usage;

/// A session as lists show it.
pub(super) fn card(card: &Card) -> Value {
    json!({
        "id": card.id.as_str(), "created": card.created.micros(), "updated": card.updated.micros(),
        "status": status(card), "title": title(card), "workspace": card.workspace,
        "model": card.model.as_ref().map(ToString::to_string), "head": card.head,
        "last_prompt": card.last_prompt, "last_answer": card.last_answer,
        "messages": card.messages, "usage": usage(card.usage), "context": card.context,
        "error": card.error, "parent": card.labels.get("parent"),
        "forked": card.forked.as_ref().map(|fork| json!({
            "parent": fork.parent.as_str(), "at": fork.at,
        })),
    })
}

/// An opened session: the state that does not follow from the last page of its events.
pub(super) fn session(state: &State) -> Value {
    let queue = state.turns.iter().filter(|turn| turn.status == TurnStatus::Pending);
    json!({
        "card": card(&state.card()), "model": state.current_model().to_string(),
        "window": state.window(), "turns": state.turns.iter().map(turn).collect::<Vec<_>>(),
        "queue": queue.map(|turn| turn.id.as_str()).collect::<Vec<_>>(),
        "remembered": state.remembered.iter().map(|it| json!({
            "tool": it.tool, "answer": match it.answer {
                quintet_kernel::event::Answer::Allow => "approve",
                quintet_kernel::event::Answer::Deny => "deny",
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

fn status(card: &Card) -> &'static str {
    match card.status {
        Status::Active if card.open => "running",
        Status::Active => "idle",
        Status::WaitingApproval => "waiting",
        Status::Completed => "completed",
        Status::Failed => "failed",
        Status::Cancelled => "cancelled",
    }
}

fn title(card: &Card) -> &str {
    card.labels.get("title").unwrap_or(&card.title)
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

fn gap(gap: &Gap) -> Value {
    json!({ "path": gap.path, "paths": gap.paths, "reason": gap.reason })
}

/// A model that can be chosen.
pub(super) fn model(listed: &Listed) -> Value {
    json!({
        "id": listed.model.to_string(), "label": listed.about.label, "usable": listed.usable,
        "window": listed.profile.context_window, "tools": listed.profile.tools,
        "images": listed.profile.inputs.contains(&quintet_kernel::message::MediaKind::Image),
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
