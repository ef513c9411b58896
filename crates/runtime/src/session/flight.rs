//! Output of the open step on its way: shown at once, durable in a moment.

use std::time::Duration;

use quintet_kernel::command::Command;
use quintet_kernel::follow::Piece;
use quintet_kernel::model::Channel;
use quintet_kernel::port::Drafts;
use quintet_kernel::session::OpenStep;
use quintet_kernel::{SessionId, StepId, Time, TurnId};
use tokio::time::Instant;

use crate::tail::Tail;

/// Output of the open step on its way.
#[derive(Debug)]
pub(super) struct Flight {
    turn: TurnId,
    step: StepId,
    /// Bytes of the step's output so far.
    end: u64,
    /// What the journal does not have yet.
    unkept: Vec<Piece>,
    bytes: usize,
    /// What followers may not see yet, because something that comes before it is not durable.
    held: Vec<Piece>,
    /// Text is shown when the journal has it: a draft could not be written, or would die with this node.
    late: bool,
    /// When what is unkept must be kept.
    due: Option<Instant>,
}

impl Flight {
    /// Output of a step; `late` if it may be shown only once the journal has it.
    pub(super) fn new(turn: TurnId, step: &OpenStep, late: bool) -> Self {
        let (unkept, held) = (Vec::new(), Vec::new());
        let (step, end) = (step.id.clone(), step.written);
        Self { turn, step, end, unkept, bytes: 0, held, late, due: None }
    }

    pub(super) fn step(&self) -> &StepId {
        &self.step
    }

    /// When what is unkept must be kept.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
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
    pub(super) fn piece(&mut self, output: (Channel, String), at: Time) -> Piece {
        let (channel, text) = output;
        let piece = Piece {
            turn: self.turn.clone(),
            step: self.step.clone(),
            offset: self.end,
            channel,
            text: text.into(),
            at,
        };
        self.end += piece.text.len() as u64;
        self.bytes += piece.text.len();
        self.unkept.push(piece.clone());
        piece
    }

    /// Writes a piece's draft, so that it outlives this process; whether it may be shown. Once one
    /// cannot be written nothing is: what follows a hole is not shown either.
    pub(super) fn draft(
        &mut self,
        piece: &Piece,
        session: &SessionId,
        drafts: &dyn Drafts,
    ) -> bool {
        if !self.late
            && let Err(error) = drafts.keep(session, piece)
        {
            tracing::warn!(%session, %error, "text in flight is shown late");
            self.late = true;
        }
        !self.late
    }

    /// Keeps a piece from followers until [`Self::reveal`], or until the journal has it.
    pub(super) fn hold(&mut self, piece: Piece) {
        self.held.push(piece);
    }

    /// From now on there is something to keep.
    pub(super) fn arm(&mut self, after: Duration) {
        self.due.get_or_insert_with(|| Instant::now() + after);
    }

    /// Followers were given the step's output up to here as an event; held back or not, it is theirs.
    pub(super) fn came(&mut self, step: &StepId, end: u64) {
        if self.step == *step {
            self.held.retain(|piece| piece.offset + piece.text.len() as u64 > end);
        }
    }

    /// Followers know of everything that comes before.
    pub(super) fn reveal(&mut self, tail: &Tail) {
        for piece in self.held.drain(..) {
            tail.push(piece);
        }
    }

    /// What must be kept, in as few commands as possible.
    pub(super) fn drain(&mut self) -> Vec<Command> {
        self.due = None;
        self.bytes = 0;
        outputs(self.unkept.drain(..))
    }
}

/// The commands that have pieces kept: one for each run of them in one channel, which keeps their
/// lengths.
pub(crate) fn outputs(pieces: impl IntoIterator<Item = Piece>) -> Vec<Command> {
    let mut runs: Vec<Vec<Piece>> = Vec::new();
    for piece in pieces {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| continues(last, &piece)) => run.push(piece),
            _ => runs.push(vec![piece]),
        }
    }
    runs.into_iter().filter_map(output).collect()
}

fn continues(last: &Piece, piece: &Piece) -> bool {
    let adjoins = last.offset + last.text.len() as u64 == piece.offset;
    adjoins && last.channel == piece.channel && last.step == piece.step
}

fn output(run: Vec<Piece>) -> Option<Command> {
    let Piece { step, offset, channel, .. } = run.first()?.clone();
    let text: String = run.iter().map(|piece| &*piece.text).collect();
    let length = |piece: &Piece| u32::try_from(piece.text.len()).unwrap_or(u32::MAX);
    let pieces = match &run[..] {
        [_] => Vec::new(),
        several => several.iter().map(length).collect(),
    };
    Some(Command::Output { step, offset, channel, text, pieces })
}
