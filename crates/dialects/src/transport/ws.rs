//! Helpers for WebSocket connections: sending with a timeout, closing, and pings.

use std::time::Duration;

use axum::extract::ws::{CloseCode, CloseFrame, Message, WebSocket};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at, timeout};
use tokio_tungstenite::tungstenite;

/// Time that a client may take to read one frame.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The client has disconnected, or the connection must end.
#[derive(Debug)]
pub(crate) struct Gone;

/// Sends a frame. Fails if the client has disconnected, or does not read for too long.
pub(crate) async fn send(socket: &mut WebSocket, frame: Message) -> Result<(), Gone> {
    match timeout(SEND_TIMEOUT, socket.send(frame)).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(Gone),
    }
}

/// Sends a close frame; the client may have disconnected already.
pub(crate) async fn close(socket: &mut WebSocket, code: CloseCode, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = timeout(SEND_TIMEOUT, socket.send(Message::Close(Some(frame)))).await;
}

/// True if a frame was not read because it is too large.
pub(crate) fn is_too_large(error: &axum::Error) -> bool {
    let inner = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    matches!(inner, Some(tungstenite::Error::Capacity(_)))
}

/// Schedules pings, and tracks when a client last sent something.
#[derive(Debug)]
pub(crate) struct Heartbeat {
    ping: Interval,
    silence: Duration,
    last: Instant,
}

impl Heartbeat {
    /// A heartbeat with this ping interval for a client that may be silent for this long.
    pub(crate) fn new(every: Duration, silence: Duration) -> Self {
        let last = Instant::now();
        let mut ping = interval_at(last + every, every);
        // After a busy phase a client is pinged once, not for every missed interval.
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ping, silence, last }
    }

    /// Records that the client sent something.
    pub(crate) fn alive(&mut self) {
        self.last = Instant::now();
    }

    /// Waits until a ping is due. False if the client was silent for too long. Cancel-safe.
    pub(crate) async fn due(&mut self) -> bool {
        self.ping.tick().await;
        self.last.elapsed() <= self.silence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_pinged_and_then_disconnected() {
        let mut heartbeat = Heartbeat::new(Duration::from_secs(30), Duration::from_secs(75));
        assert!(heartbeat.due().await, "after 30 s");
        heartbeat.alive();
        assert!(heartbeat.due().await && heartbeat.due().await, "30 and 60 s after it was alive");
        assert!(!heartbeat.due().await, "90 s after it was alive");
    }
}
