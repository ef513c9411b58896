//! Decides whether a run's tools may act: pause, stop and control mode.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Maximum time for which a call is held before the model has to repeat it; the daemon waits 120
/// seconds.
const HOLD_LIMIT: Duration = Duration::from_secs(100);
/// A call that was held for longer is not run: the daemon may have abandoned it.
const HELD_CALL_TIMEOUT: Duration = Duration::from_secs(5);

/// Who may act in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Agent,
    /// Calls that do more than read wait for `resume`.
    Shared,
    /// Nothing runs until control is returned.
    Human,
}

impl Mode {
    pub(super) fn named(name: &str) -> Self {
        match name {
            "shared_control" => Self::Shared,
            "human_override" => Self::Human,
            _ => Self::Agent,
        }
    }
}

/// The effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Pause,
    Resume,
    Stop,
    Mode(Mode),
}

impl Change {
    pub(super) fn named(action: &str, mode: &str) -> Option<Self> {
        match action {
            "pause" => Some(Self::Pause),
            "resume" => Some(Self::Resume),
            "stop" => Some(Self::Stop),
            "set-control-mode" => Some(Self::Mode(Mode::named(mode))),
            _ => None,
        }
    }
}

/// Whether a call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// The call may run.
    Run,
    /// The call must not run now; the model may repeat it.
    Held,
    /// The run must stop.
    Stopped,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    paused: bool,
    mode: Mode,
    stopped: bool,
    /// The number of `resume` commands.
    resumed: u64,
}

/// The gate of one run.
#[derive(Debug)]
pub(super) struct Gate {
    state: watch::Sender<State>,
}

impl Gate {
    pub(super) fn new(paused: bool, mode: Mode) -> Self {
        Self { state: watch::Sender::new(State { paused, mode, ..State::default() }) }
    }

    pub(super) fn apply(&self, change: Change) {
        self.state.send_modify(|state| match change {
            Change::Pause => state.paused = true,
            Change::Resume => {
                state.paused = false;
                state.resumed += 1;
            }
            Change::Stop => state.stopped = true,
            Change::Mode(mode) => state.mode = mode,
        });
    }

    /// Resolves when the run must stop.
    pub(super) async fn stopped(&self) {
        self.until(|state| state.stopped).await;
    }

    /// Resolves when the run is not paused, or must stop.
    pub(super) async fn unpaused(&self) {
        self.until(|state| !state.paused || state.stopped).await;
    }

    /// True if a call would have to wait now.
    pub(super) fn holds(&self, only_reads: bool) -> bool {
        !self.state.borrow().admits(only_reads, self.state.borrow().resumed)
    }

    /// Waits until a call may run, for at most as long as the model waits.
    pub(super) async fn admit(&self, only_reads: bool) -> Admission {
        let (began, resumed_before) = (Instant::now(), self.state.borrow().resumed);
        let decided = self.until(|state| state.stopped || state.admits(only_reads, resumed_before));
        if timeout_at(began + HOLD_LIMIT, decided).await.is_err() {
            return Admission::Held;
        }
        if self.state.borrow().stopped {
            Admission::Stopped
        } else if began.elapsed() < HELD_CALL_TIMEOUT {
            Admission::Run
        } else {
            Admission::Held
        }
    }

    async fn until(&self, matches: impl Fn(&State) -> bool) {
        // The gate itself owns the sender, so this cannot fail.
        let _ = self.state.subscribe().wait_for(|state| matches(state)).await;
    }
}

impl State {
    fn admits(&self, only_reads: bool, resumed_before: u64) -> bool {
        let allowed = match self.mode {
            Mode::Agent => true,
            Mode::Shared => only_reads || self.resumed > resumed_before,
            Mode::Human => false,
        };
        !self.paused && allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_until_control_allows_it() {
        let gate = Gate::new(false, Mode::Agent);
        assert_eq!(gate.admit(false).await, Admission::Run);
        gate.apply(Change::Pause);
        assert_eq!(gate.admit(true).await, Admission::Held, "there was no resume in time");
        gate.apply(Change::Resume);
        gate.apply(Change::Mode(Mode::Human));
        assert_eq!(gate.admit(true).await, Admission::Held);
        gate.apply(Change::Mode(Mode::Shared));
        assert_eq!(gate.admit(true).await, Admission::Run, "reading is allowed");
        assert!(gate.holds(false) && !gate.holds(true));
        let (admitted, ()) = tokio::join!(gate.admit(false), async {
            tokio::task::yield_now().await;
            gate.apply(Change::Resume);
        });
        assert_eq!(admitted, Admission::Run, "a person resumed the run");
        gate.apply(Change::Stop);
        assert_eq!(gate.admit(false).await, Admission::Stopped);
        gate.unpaused().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_waited_too_long_must_be_repeated() {
        let gate = Gate::new(true, Mode::Agent);
        let (admitted, ()) = tokio::join!(gate.admit(false), async {
            tokio::time::sleep(HELD_CALL_TIMEOUT * 2).await;
            gate.apply(Change::Resume);
        });
        assert_eq!(admitted, Admission::Held);
        assert_eq!(gate.admit(false).await, Admission::Run);
    }
}
