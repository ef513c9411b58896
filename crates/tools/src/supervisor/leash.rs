//! What asks for the end of the command: the daemon's end of the pipe, or a signal.

use std::io::{self, PipeWriter, Read};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Calls `end` once stdin has a byte, ends or cannot be read, and once this process is told to
/// stop: somebody who ends all processes of the daemon by name must not set their trees free.
pub(super) fn hold(end: impl Fn() + Clone + Send + 'static) -> io::Result<()> {
    end_by_signal(end.clone())?;
    spawn("leash", move || {
        await_stdin();
        end();
    })
}

/// Passes stdin on to a command. Calls `leave` once stdin ends and was passed on, and `end` once this
/// process is told to stop.
pub(super) fn forward(
    mut input: PipeWriter,
    leave: impl FnOnce() + Send + 'static,
    end: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    end_by_signal(end)?;
    spawn("leash", move || {
        // A command that closed its input is still ended by the end of ours.
        if io::copy(&mut io::stdin().lock(), &mut input).is_err() {
            let _rest = io::copy(&mut io::stdin().lock(), &mut io::sink());
        }
        drop(input);
        leave();
    })
}

fn end_by_signal(end: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new()?;
    spawn("signals", move || {
        signals.wait();
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
