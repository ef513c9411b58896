//! Publishes durable events to followers, waiting clients and observers.

use std::sync::Arc;

use quintet_kernel::TurnId;
use quintet_kernel::event::{Ended, Event, Record};

use super::command_loop::{LiveSession, TurnWaiter};
use crate::session::pending_appends::{PendingAppend, PendingReply};

impl LiveSession {
    /// The oldest append is durable.
    pub(super) fn on_append_done(&mut self) {
        self.publish();
        self.reconcile();
    }

    /// Publishes the events of the oldest append.
    pub(super) fn publish(&mut self) {
        let Some(append) = self.pending.pop_front() else { return };
        let mut shows_output = append.has_text();
        let PendingAppend { records, answers, .. } = append;
        self.published = records.last().map_or(self.published, |last| last.seq);
        self.tail.publish(&records);
        let all_published = self.all_published();
        if let Some(buffer) = &mut self.buffer {
            for record in &records {
                if let Event::TextAppended { step, offset, text, .. } = &record.event {
                    buffer.on_published(step, offset + text.len() as u64);
                }
            }
            if all_published {
                shows_output |= buffer.release_held(&self.tail);
            }
        }
        if shows_output && let Some(meter) = &mut self.overhead {
            meter.output_shown();
        }
        answers.into_iter().for_each(PendingReply::give);
        self.shared
            .deps
            .observers
            .iter()
            .for_each(|observer| observer.published(&self.state.id, self.published));
        for record in &records {
            self.on_published(record);
        }
    }

    fn on_published(&mut self, record: &Arc<Record>) {
        match record.event.ended() {
            Some(Ended::Turn(turn)) => {
                if std::mem::take(&mut self.needs_cleanup) {
                    let (workspaces, turn_over) =
                        (Arc::clone(&self.shared.deps.workspaces), turn.clone());
                    self.cleanup.spawn_blocking(move || workspaces.turn_ended(&turn_over));
                }
                self.clear_draft();
                self.answer_waiters(turn, record);
                self.keep_overhead(turn);
            }
            Some(Ended::Step) => self.clear_draft(),
            Some(Ended::Revert(turn)) => self.answer_waiters(turn, record),
            None => {}
        }
    }

    /// Empties the draft, unless it holds text that is not durable yet.
    fn clear_draft(&self) {
        let writing = self.buffer.as_ref().is_some_and(|buffer| buffer.end() > 0);
        let appending = self.decided.has_text() || self.pending.iter().any(PendingAppend::has_text);
        if !writing && !appending {
            self.shared.deps.drafts.clear(&self.state.id);
        }
    }

    /// Replies to the clients that waited for this turn.
    fn answer_waiters(&mut self, turn: &TurnId, record: &Arc<Record>) {
        let (over, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting: &TurnWaiter| waiting.turn == *turn);
        self.waiting = waiting;
        for TurnWaiter { mut receipt, reply, .. } in over {
            receipt.records.push(Arc::clone(record));
            PendingReply::Receipt(reply, receipt).give();
        }
    }
}
