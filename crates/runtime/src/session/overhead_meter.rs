//! Measures how much of a turn's time the daemon itself takes.
//!
//! At every moment a turn waits for one thing: for the daemon, for a model, for tools, or for a
//! client. The session's task reports what that is after everything it handled; the clock is read
//! only when it changed.

use std::time::Duration;

use quintet_kernel::port::TurnOverhead;
use quintet_kernel::session::OpenTurn;
use quintet_kernel::{Time, TurnId};
use tokio::time::Instant;

use super::command_loop::LiveSession;

/// What a turn waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    /// The daemon decides, stores and publishes.
    Daemon,
    /// The turn's model call of this number is in progress.
    Model(u32),
    /// A tool runs, or a model summarizes or reviews.
    Tools,
    /// A person or another program has to answer.
    Client,
}

/// The turn's first output.
#[derive(Clone, Copy, Debug)]
enum FirstOutput {
    Awaited,
    Arrived(Instant),
    /// Followers received it this long after it arrived.
    Shown(Duration),
}

/// Measures one turn.
#[derive(Debug)]
pub(super) struct OverheadMeter {
    turn: TurnId,
    activity: Activity,
    /// When the activity began.
    since: Instant,
    /// The daemon's time since the last model call, or since the turn began.
    since_model: Duration,
    asked: Option<Duration>,
    first_output: FirstOutput,
    round_trips: u32,
    /// The daemon's time in all round trips.
    in_round_trips: Duration,
    models_and_tools: Duration,
}

impl OverheadMeter {
    /// A turn that a command started which arrived at this time.
    pub(super) fn new(turn: TurnId, received: Instant) -> Self {
        Self {
            turn,
            activity: Activity::Daemon,
            since: received,
            since_model: Duration::ZERO,
            asked: None,
            first_output: FirstOutput::Awaited,
            round_trips: 0,
            in_round_trips: Duration::ZERO,
            models_and_tools: Duration::ZERO,
        }
    }

    /// The model wrote something.
    pub(super) fn output_arrived(&mut self) {
        if let FirstOutput::Awaited = self.first_output {
            self.first_output = FirstOutput::Arrived(Instant::now());
        }
    }

    /// Followers received what the model wrote.
    pub(super) fn output_shown(&mut self) {
        if let FirstOutput::Arrived(at) = self.first_output {
            self.first_output = FirstOutput::Shown(at.elapsed());
        }
    }

    /// Notes what the turn waits for from now on. A wait for something else ended when the session
    /// was woken; what it did since then is the daemon's time.
    fn observe(&mut self, activity: Activity, woken: Instant) {
        if activity == self.activity {
            return;
        }
        if self.activity != Activity::Daemon {
            self.spend_until(woken);
            self.activity = Activity::Daemon;
        }
        self.spend_until(Instant::now());
        if let Activity::Model(_) = activity {
            self.model_called();
        }
        self.activity = activity;
    }

    /// Counts the time until this moment for the current activity.
    fn spend_until(&mut self, until: Instant) {
        let spent = until.saturating_duration_since(self.since);
        self.since += spent;
        match self.activity {
            Activity::Daemon => self.since_model += spent,
            Activity::Model(_) | Activity::Tools => self.models_and_tools += spent,
            Activity::Client => {}
        }
    }

    fn model_called(&mut self) {
        let took = std::mem::take(&mut self.since_model);
        if self.asked.is_none() {
            self.asked = Some(took);
        } else {
            self.round_trips += 1;
            self.in_round_trips += took;
        }
    }

    /// The overhead of the turn, whose end was just published; `None` if no model was called.
    fn finish(mut self, ended: Time) -> Option<TurnOverhead> {
        self.spend_until(Instant::now());
        let asked = self.asked?;
        let first_output = match self.first_output {
            FirstOutput::Shown(took) => Some(took),
            FirstOutput::Awaited | FirstOutput::Arrived(_) => None,
        };
        let has_round_trips = self.round_trips > 0;
        Some(TurnOverhead {
            ended,
            asked,
            first_output,
            tool_round_trip: has_round_trips.then(|| self.in_round_trips / self.round_trips),
            total: asked + self.in_round_trips + self.since_model,
            models_and_tools: self.models_and_tools,
        })
    }
}

impl LiveSession {
    /// Starts to measure the open turn, which a command started that arrived at this time.
    pub(super) fn measure(&mut self, received: Instant) {
        let turn = self.state.open.as_ref().map(|open| open.id.clone());
        self.overhead = turn.map(|turn| OverheadMeter::new(turn, received));
    }

    /// Notes what the turn waits for, after everything was handled that woke the session.
    pub(super) fn observe_activity(&mut self, woken: Instant) {
        if let Some(meter) = &self.overhead {
            let activity = self.activity(&meter.turn);
            if let Some(meter) = &mut self.overhead {
                meter.observe(activity, woken);
            }
        }
    }

    fn activity(&self, turn: &TurnId) -> Activity {
        // The end of a turn is still to be published when the next one begins.
        let Some(open) = self.state.open.as_ref().filter(|open| open.id == *turn) else {
            return Activity::Daemon;
        };
        // A client has to be told before it can answer.
        let may_wait = || self.pending.is_empty() && self.waits_for_client(open);
        if self.model_call.is_some() {
            Activity::Model(open.steps)
        } else if may_wait() {
            Activity::Client
        } else if self.effects.run_work() {
            Activity::Tools
        } else {
            Activity::Daemon
        }
    }

    fn waits_for_client(&self, open: &OpenTurn) -> bool {
        let asks = open.waits_for_approval() || !open.questions.is_empty();
        asks || open.held || open.waits_for_client() || !self.state.asked.is_empty()
    }

    /// Keeps the overhead of a turn whose end was just published.
    pub(super) fn keep_overhead(&mut self, turn: &TurnId) {
        let ended = self.overhead.take_if(|meter| meter.turn == *turn);
        let measured = ended.and_then(|meter| meter.finish(self.shared.deps.clock.now()));
        measured.into_iter().for_each(|measured| self.shared.overheads.add(measured));
    }
}
