//! Starts model calls and handles their streamed output.

use std::sync::Arc;

use quintet_kernel::StepId;
use quintet_kernel::command::Command;
use quintet_kernel::model::{Channel, Chunk, Failure};
use quintet_kernel::prompt;

use super::command_loop::LiveSession;
use crate::session::model_call::{ModelCall, OUTPUT_LIMIT, too_much_output};
use crate::session::pending_appends::PendingAppend;
use crate::session::text_buffer::TextBuffer;

impl LiveSession {
    pub(super) fn start_model_call(&mut self, id: StepId) {
        if self.buffer.as_ref().is_some_and(|buffer| *buffer.step() == id) {
            return;
        }
        let Some(open) = &self.state.open else { return };
        let Some(step) = open.step() else { return };
        let deps = &self.shared.deps;
        self.buffer = Some(TextBuffer::new(open.id.clone(), step, deps.cluster.is_some()));
        let prompt = prompt::assemble_next(&self.state, &mut self.prompts);
        self.model_call = Some(ModelCall::new(id, prompt, Arc::clone(&deps.blobs), &deps.models));
    }

    pub(super) fn on_model_chunks(&mut self, step: &StepId, chunks: Result<Vec<Chunk>, Failure>) {
        match chunks {
            Ok(chunks) => chunks.into_iter().for_each(|chunk| self.chunk(step, chunk)),
            Err(failure) => {
                self.handle_internal(Command::ModelFailed { step: step.clone(), failure })
            }
        }
    }

    fn chunk(&mut self, step: &StepId, chunk: Chunk) {
        match chunk {
            Chunk::Output(_, text) if text.is_empty() => {}
            Chunk::Output(channel, text) => self.output(step, (channel, text)),
            Chunk::Retrying { attempt, wait, reason } => {
                let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                self.handle_internal(Command::ModelRetrying {
                    step: step.clone(),
                    attempt,
                    wait_ms,
                    reason,
                });
            }
            Chunk::Finished(answer) => {
                self.handle_internal(Command::ModelCompleted { step: step.clone(), answer })
            }
        }
    }

    /// Shows output to followers and buffers it for the journal. Followers receive text in
    /// the pieces in which it arrives here, now and on every later read.
    fn output(&mut self, step: &StepId, output: (Channel, String)) {
        let deps = &self.shared.deps;
        let all_published = self.all_published();
        let Some(buffer) = self.buffer.as_mut().filter(|buffer| buffer.step() == step) else {
            return;
        };
        if buffer.end() + output.1.len() as u64 > OUTPUT_LIMIT {
            self.model_call = None;
            let (step, failure) = (step.clone(), too_much_output());
            return self.handle_internal(Command::ModelFailed { step, failure });
        }
        if let Some(meter) = &mut self.overhead {
            meter.output_arrived();
        }
        let delta = buffer.push(output, deps.clock.now());
        if buffer.draft(&delta, &self.state.id, &*deps.drafts) {
            if all_published {
                self.tail.push(delta);
                if let Some(meter) = &mut self.overhead {
                    meter.output_shown();
                }
            } else {
                buffer.hold(delta)
            }
            buffer.schedule_flush(deps.timing.flush_after);
        } else {
            buffer.schedule_flush(deps.timing.flush_undrafted_after);
        }
        if buffer.bytes() >= deps.timing.flush_bytes {
            self.wake();
        }
    }

    /// True if followers know every event, so that text may be shown: text never overtakes
    /// an event.
    pub(super) fn all_published(&self) -> bool {
        self.decided.only_text() && self.pending.iter().all(PendingAppend::only_text)
    }
}
