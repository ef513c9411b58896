//! What a live session does with its model's words: asks for them, shows them, has them kept.

use std::sync::Arc;

use quintet_kernel::StepId;
use quintet_kernel::command::Command;
use quintet_kernel::model::{Channel, Chunk, Failure};
use quintet_kernel::prompt;

use super::Live;
use crate::session::asking::{Asking, OUTPUT_LIMIT, too_much_output};
use crate::session::flight::Flight;
use crate::session::pending::Pending;

impl Live {
    pub(super) fn ask(&mut self, id: StepId) {
        if self.flight.as_ref().is_some_and(|flight| *flight.step() == id) {
            return;
        }
        let Some(open) = &self.state.open else { return };
        let Some(step) = open.step() else { return };
        let parts = &self.shared.parts;
        self.flight = Some(Flight::new(open.id.clone(), step, parts.cluster.is_some()));
        let prompt = prompt::assemble_next(&self.state, &mut self.prompts);
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
            Chunk::Output(_, text) if text.is_empty() => {}
            Chunk::Output(channel, text) => self.output(step, (channel, text)),
            Chunk::Retrying { attempt, wait, reason } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                self.news(Command::Retrying { step: step.clone(), attempt, wait_ms, reason });
            }
            Chunk::Finished(answer) => self.news(Command::Answered { step: step.clone(), answer }),
        }
    }

    /// Shows a piece of output and has it kept. This is where text is cut: followers get it in the
    /// pieces in which it arrives here, now and whenever they read it later.
    fn output(&mut self, step: &StepId, output: (Channel, String)) {
        let parts = &self.shared.parts;
        let told = self.told();
        let Some(flight) = self.flight.as_mut().filter(|flight| flight.step() == step) else {
            return;
        };
        if flight.end() + output.1.len() as u64 > OUTPUT_LIMIT {
            self.asking = None;
            let (step, failure) = (step.clone(), too_much_output());
            return self.news(Command::ModelFailed { step, failure });
        }
        let piece = flight.piece(output, parts.stamps.now());
        if flight.draft(&piece, &self.state.id, &*parts.drafts) {
            if told {
                self.tail.push(piece)
            } else {
                flight.hold(piece)
            }
            flight.arm(parts.pace.flush_after);
        } else {
            flight.arm(parts.pace.flush_undrafted_after);
        }
        if flight.bytes() >= parts.pace.flush_bytes {
            self.flush();
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
