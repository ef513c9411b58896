//! The signals that end the daemon.

use anyhow::Result;
use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// The signals that end the daemon.
pub(super) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    /// Handled so that a write beyond the file size limit is an error and does not end the process.
    _file_size: unix::Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            _file_size: signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?,
        })
    }

    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
        }
    }
}

/// The exit code that shells report for a program that a signal ended.
pub(super) fn exit_code(signal: Signal) -> i32 {
    128 + signal.as_raw()
}
