//! Streamed output of the open step: shown to followers at once, appended to the journal in
//! batches.

use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::follow::Delta;
use quintet_kernel::model::Channel;
use quintet_kernel::port::Drafts;
use quintet_kernel::session::OpenStep;
use quintet_kernel::{SessionId, StepId, Time, TurnId};
use tokio::time::Instant;

use crate::tail::Tail;

/// Streamed output of the open step.
#[derive(Debug)]
pub(super) struct TextBuffer {
    turn: TurnId,
    step: StepId,
    /// Length of the step's output so far, in bytes.
    end: u64,
    /// Deltas that are not in the journal yet.
    unflushed: Vec<Delta>,
    bytes: usize,
    /// Deltas that followers may not see yet, because an earlier event is not durable.
    held: Vec<Delta>,
    /// True if text is shown only once the journal has it: a draft could not be written, or would
    /// be lost with this node.
    draft_failed: bool,
    /// When the unflushed text must be appended.
    flush_at: Option<Instant>,
}

impl TextBuffer {
    /// Output of a step; `draft_failed` if it may be shown only once the journal has it.
    pub(super) fn new(turn: TurnId, step: &OpenStep, draft_failed: bool) -> Self {
        let (unflushed, held) = (Vec::new(), Vec::new());
        let (step, end) = (step.id.clone(), step.written);
        Self { turn, step, end, unflushed, bytes: 0, held, draft_failed, flush_at: None }
    }

    pub(super) fn step(&self) -> &StepId {
        &self.step
    }

    /// When the unflushed text must be appended.
    pub(super) fn flush_at(&self) -> Option<Instant> {
        self.flush_at
    }

    /// Length of the step's output so far, in bytes.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Length of the unflushed text, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds output that just arrived.
    pub(super) fn push(&mut self, output: (Channel, String), at: Time) -> Delta {
        let (channel, text) = output;
        let delta = Delta {
            turn: self.turn.clone(),
            step: self.step.clone(),
            offset: self.end,
            channel,
            text: text.into(),
            at,
        };
        self.end += delta.text.len() as u64;
        self.bytes += delta.text.len();
        self.unflushed.push(delta.clone());
        delta
    }

    /// Writes a delta to the draft, so that it survives the process; true if followers may
    /// see it. After one failure nothing is drafted, so that followers never see text after
    /// a gap.
    pub(super) fn draft(
        &mut self,
        delta: &Delta,
        session: &SessionId,
        drafts: &dyn Drafts,
    ) -> bool {
        if !self.draft_failed
            && let Err(error) = drafts.push(session, delta)
        {
            tracing::warn!(%session, %error, "could not write the draft; text is shown once it is durable");
            self.draft_failed = true;
        }
        !self.draft_failed
    }

    /// Hides a delta from followers until [`Self::release_held`] or until the journal has
    /// it.
    pub(super) fn hold(&mut self, delta: Delta) {
        self.held.push(delta);
    }

    /// Sets the time of the next flush, unless one is scheduled.
    pub(super) fn schedule_flush(&mut self, after: Duration) {
        self.flush_at.get_or_insert_with(|| Instant::now() + after);
    }

    /// Followers received the step's output up to `end` as an event, so held deltas before
    /// it are dropped.
    pub(super) fn on_published(&mut self, step: &StepId, end: u64) {
        if self.step == *step {
            self.held.retain(|delta| delta.offset + delta.text.len() as u64 > end);
        }
    }

    /// Shows the held deltas, because all earlier events are published; true if there were some.
    pub(super) fn release_held(&mut self, tail: &Tail) -> bool {
        let has_held = !self.held.is_empty();
        for delta in self.held.drain(..) {
            tail.push(delta);
        }
        has_held
    }

    /// The commands that store the unflushed text, as few as possible.
    pub(super) fn drain(&mut self) -> Vec<Command> {
        self.flush_at = None;
        self.bytes = 0;
        output_commands(self.unflushed.drain(..))
    }
}

/// The commands that store deltas: one per run of deltas of one channel, with their lengths.
pub(crate) fn output_commands(deltas: impl IntoIterator<Item = Delta>) -> Vec<Command> {
    let mut runs: Vec<Vec<Delta>> = Vec::new();
    for delta in deltas {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| continues(last, &delta)) => run.push(delta),
            _ => runs.push(vec![delta]),
        }
    }
    runs.into_iter().filter_map(output).collect()
}

fn continues(last: &Delta, delta: &Delta) -> bool {
    let adjoins = last.offset + last.text.len() as u64 == delta.offset;
    adjoins && last.channel == delta.channel && last.step == delta.step
}

fn output(run: Vec<Delta>) -> Option<Command> {
    let Delta { step, offset, channel, .. } = run.first()?.clone();
    let text: String = run.iter().map(|delta| &*delta.text).collect();
    let length = |delta: &Delta| u32::try_from(delta.text.len()).unwrap_or(u32::MAX);
    let pieces = match &run[..] {
        [_] => Vec::new(),
        several => several.iter().map(length).collect(),
    };
    Some(Command::ModelOutput { step, offset, channel, text, pieces })
}
