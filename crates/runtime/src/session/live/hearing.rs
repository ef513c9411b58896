//! What a live session does with its model's words: asks for them, shows them, has them kept.

use std::sync::Arc;

use quintet_kernel::StepId;
use quintet_kernel::command::Command;
use quintet_kernel::model::{Chunk, Failure};
use quintet_kernel::prompt;

use super::Live;
use crate::session::asking::Asking;
use crate::session::flight::Flight;
use crate::session::pending::Pending;

impl Live {
    pub(super) fn ask(&mut self, id: StepId) {
        if self.flight.as_ref().is_some_and(|flight| *flight.step() == id) {
            return;
        }
        let Some(open) = &self.state.open else { return };
        let Some(step) = open.step() else { return };
        self.flight = Some(Flight::new(open.id.clone(), step));
        let parts = &self.shared.parts;
        let prompt = prompt::assemble(&self.state);
        self.asking = Some(Asking::new(id, prompt, Arc::clone(&parts.blobs), &parts.models));
    }

    pub(super) fn hear(&mut self, step: &StepId, heard: Result<Vec<Chunk>, Failure>) {
        match heard {
            Ok(chunks) => chunks.into_iter().for_each(|chunk| self.chunk(step, chunk)),
            Err(failure) => self.news(Command::ModelFailed { step: step.clone(), failure }),
        }
    }

    fn chunk(&mut self, step: &StepId, chunk: Chunk) {
        match chunk {
            Chunk::Output(channel, text) => {
                let parts = &self.shared.parts;
                let told = self.told();
                let Some(flight) = self.flight.as_mut().filter(|flight| flight.step() == step)
                else {
                    return;
                };
                let piece = flight.piece((channel, text), parts.stamps.now());
                match flight.draft(&piece, &self.state.id, &*parts.drafts) {
                    true if told => self.tail.push(piece),
                    true => flight.hold(piece),
                    false => {}
                }
                flight.arm(parts.pace.flush_after);
                if flight.bytes() >= parts.pace.flush_bytes {
                    self.flush();
                }
            }
            Chunk::Retrying { attempt, wait, reason } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                self.news(Command::Retrying { step: step.clone(), attempt, wait_ms, reason });
            }
            Chunk::Finished(answer) => self.news(Command::Answered { step: step.clone(), answer }),
        }
    }

    /// Whether followers know of every event, so that text may be shown: it never overtakes one.
    pub(super) fn told(&self) -> bool {
        self.pending.iter().all(Pending::only_text)
    }

    pub(super) fn flush(&mut self) {
        self.news(Command::Wake);
    }
}
