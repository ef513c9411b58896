//! How much time the daemon itself adds to turns.

use std::time::Duration;

use crate::time::Time;

/// The time of one turn in which neither a model nor a tool nor a client was at work. Measured
/// inside the daemon, so that the transport on either side is not included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnOverhead {
    /// When the turn ended.
    pub ended: Time,
    /// From the command that started the turn until the model was called.
    pub asked: Duration,
    /// From the arrival of the model's first output until followers received it; `None` if the
    /// model wrote nothing.
    pub first_output: Option<Duration>,
    /// From the end of a model call until the next one, without the time in which tools ran or a
    /// client was waited for. The mean of the turn; `None` if there was only one model call.
    pub tool_round_trip: Option<Duration>,
    /// From the command that started the turn until its end was published, without the time in
    /// which models or tools ran or a client was waited for.
    pub total: Duration,
    /// The time in which models or tools ran.
    pub models_and_tools: Duration,
}

/// Inbound: what the daemon added to the time of recent turns.
pub trait TurnOverheads: Send + Sync {
    /// The newest turns of this process that were measured, oldest first. Their number is limited.
    fn recent_turns(&self) -> Vec<TurnOverhead>;
}
