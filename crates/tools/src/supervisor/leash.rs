//! What asks for the end of the command: the daemon's end of the pipe, or a signal.

use std::io::{self, Read};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Calls `end` once stdin has a byte, ends or cannot be read, and once this process is told to
/// stop: somebody who ends all processes of the daemon by name must not set their trees free.
pub(super) fn hold(end: impl Fn() + Clone + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new()?;
    let by_signal = end.clone();
    spawn("signals", move || {
        signals.wait();
        by_signal();
    })?;
    spawn("leash", move || {
        await_stdin();
        end();
    })
}

fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(body).map(drop)
}

fn await_stdin() {
    let mut byte = [0];
    while let Err(error) = io::stdin().read(&mut byte) {
        if error.kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

/// The signals that ask a process to stop. From here on they do not end this one by themselves.
struct Signals {
    runtime: Runtime,
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let hangup = signal(SignalKind::hangup())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        drop(inside);
        Ok(Self { runtime, hangup, interrupt, terminate })
    }

    fn wait(&mut self) {
        let Self { runtime, hangup, interrupt, terminate } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = hangup.recv() => (),
                _ = interrupt.recv() => (),
                _ = terminate.recv() => (),
            }
        });
    }
}
