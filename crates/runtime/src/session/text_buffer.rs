//! Output of the open step on its way: shown at once, durable in a moment.

use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::follow::Delta;
use quintet_kernel::model::Channel;
use quintet_kernel::port::Drafts;
use quintet_kernel::session::OpenStep;
use quintet_kernel::{SessionId, StepId, Time, TurnId};
use tokio::time::Instant;

use crate::tail::Tail;

/// Output of the open step on its way.
#[derive(Debug)]
pub(super) struct TextBuffer {
    turn: TurnId,
    step: StepId,
    /// Bytes of the step's output so far.
    end: u64,
    /// What the journal does not have yet.
    unflushed: Vec<Delta>,
    bytes: usize,
    /// What followers may not see yet, because something that comes before it is not durable.
    held: Vec<Delta>,
    /// Text is shown when the journal has it: a draft could not be written, or would die with this node.
    draft_failed: bool,
    /// When what is unkept must be kept.
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

    /// When what is unkept must be kept.
    pub(super) fn flush_at(&self) -> Option<Instant> {
        self.flush_at
    }

    /// Bytes of the step's output so far.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// How many bytes are unkept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes output that just arrived.
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

    /// Writes a piece's draft, so that it outlives this process; whether it may be shown. Once one
    /// cannot be written nothing is: what follows a hole is not shown either.
    pub(super) fn draft(
        &mut self,
        delta: &Delta,
        session: &SessionId,
        drafts: &dyn Drafts,
    ) -> bool {
        if !self.draft_failed
            && let Err(error) = drafts.push(session, delta)
        {
            tracing::warn!(%session, %error, "text in flight is shown late");
            self.draft_failed = true;
        }
        !self.draft_failed
    }

    /// Keeps a piece from followers until [`Self::reveal`], or until the journal has it.
    pub(super) fn hold(&mut self, delta: Delta) {
        self.held.push(delta);
    }

    /// From now on there is something to keep.
    pub(super) fn schedule_flush(&mut self, after: Duration) {
        self.flush_at.get_or_insert_with(|| Instant::now() + after);
    }

    /// Followers were given the step's output up to here as an event; held back or not, it is theirs.
    pub(super) fn on_published(&mut self, step: &StepId, end: u64) {
        if self.step == *step {
            self.held.retain(|delta| delta.offset + delta.text.len() as u64 > end);
        }
    }

    /// Followers know of everything that comes before.
    pub(super) fn release_held(&mut self, tail: &Tail) {
        for delta in self.held.drain(..) {
            tail.push(delta);
        }
    }

    /// What must be kept, in as few commands as possible.
    pub(super) fn drain(&mut self) -> Vec<Command> {
        self.flush_at = None;
        self.bytes = 0;
        output_commands(self.unflushed.drain(..))
    }
}

/// The commands that have pieces kept: one for each run of them in one channel, which keeps their
/// lengths.
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
