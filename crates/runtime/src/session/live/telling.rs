//! What a live session tells once it is durable, and to whom.

use std::sync::Arc;

use quintet_kernel::TurnId;
use quintet_kernel::event::{Event, Over, Record};

use super::{Live, Waiting};
use crate::session::pending::{Answer, Pending};

impl Live {
    /// The oldest append is through.
    pub(super) fn published(&mut self) {
        self.tell();
        self.reconcile();
    }

    /// Tells everybody what is durable now.
    pub(super) fn tell(&mut self) {
        let Some(Pending { records, answers, .. }) = self.pending.pop_front() else {
            return;
        };
        self.published = records.last().map_or(self.published, |last| last.seq);
        self.tail.publish(&records);
        let told = self.told();
        if let Some(flight) = &mut self.flight {
            for record in &records {
                if let Event::TextAppended { step, offset, text, .. } = &record.event {
                    flight.came(step, offset + text.len() as u64);
                }
            }
            if told {
                flight.reveal(&self.tail);
            }
        }
        answers.into_iter().for_each(Answer::give);
        self.shared
            .parts
            .hints
            .iter()
            .for_each(|hint| hint.published(&self.state.id, self.published));
        for record in &records {
            self.noticed(record);
        }
    }

    fn noticed(&mut self, record: &Arc<Record>) {
        match record.event.over() {
            Some(Over::Turn(turn)) => {
                let (workspaces, turn_over) =
                    (Arc::clone(&self.shared.parts.workspaces), turn.clone());
                self.tidying.spawn_blocking(move || workspaces.over(&turn_over));
                self.clear_draft();
                self.over(turn, record);
            }
            Some(Over::Step) => self.clear_draft(),
            Some(Over::Revert(turn)) => self.over(turn, record),
            None => {}
        }
    }

    /// Empties the draft, unless it has text that is not durable yet: of a step that follows, or that is
    /// on its way to the journal.
    fn clear_draft(&self) {
        let writing = self.flight.as_ref().is_some_and(|flight| flight.end() > 0);
        if !writing && !self.pending.iter().any(Pending::has_text) {
            self.shared.parts.drafts.clear(&self.state.id);
        }
    }

    /// Answers whoever waited for this.
    fn over(&mut self, turn: &TurnId, record: &Arc<Record>) {
        let (over, waiting) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting: &Waiting| waiting.turn == *turn);
        self.waiting = waiting;
        for Waiting { mut receipt, reply, .. } in over {
            receipt.records.push(Arc::clone(record));
            Answer::Receipt(reply, receipt).give();
        }
    }
}
