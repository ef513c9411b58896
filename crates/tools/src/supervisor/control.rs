//! Input of the supervisor from the daemon: a command to run, the request to end it, and signals.
//!
//! A prepared command arrives as one frame: its length as four bytes in network order, then its text.
//! The answer is one byte, the exit code, once all processes of the command have ended.

use std::io::{self, PipeWriter, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use rustix::net::{RecvFlags, recv};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long a prepared sandbox waits for its command.
pub(crate) const PREPARED_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest command: the kernel starts no program with a longer argument.
const COMMAND_LIMIT: u32 = 1 << 20;

/// Calls `end` once stdin has a byte, ends or cannot be read, and when this process gets a signal to stop:
/// ending all processes of the daemon by name must not leave their trees running.
pub(super) fn hold_open(end: impl Fn() + Clone + Send + 'static) -> io::Result<()> {
    end_by_signal(end.clone())?;
    spawn("control", move || {
        await_byte(&mut io::stdin());
        end();
    })
}

/// Forwards stdin to a command. Calls `leave` once stdin has ended and was forwarded, and `end` when this
/// process gets a signal to stop.
pub(super) fn forward(
    mut input: PipeWriter,
    leave: impl FnOnce() + Send + 'static,
    end: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    end_by_signal(end)?;
    spawn("control", move || {
        // A command that closed its input still ends with our input.
        if io::copy(&mut io::stdin().lock(), &mut input).is_err() {
            let _rest = io::copy(&mut io::stdin().lock(), &mut io::sink());
        }
        drop(input);
        leave();
    })
}

/// Passes one command on to the process that waits for it, and its exit code back. Calls `end` like
/// [`hold_open`], and if no command arrives in time. `is_started` returns once that process runs.
pub(super) fn pass_command(
    waiting: UnixStream,
    is_started: impl FnOnce() + Send + 'static,
    end: impl Fn() + Clone + Send + 'static,
) -> io::Result<()> {
    end_by_signal(end.clone())?;
    let mut answer = (waiting.try_clone()?, own_stdin()?);
    spawn("answer", move || {
        let mut code = [0];
        if answer.0.read_exact(&mut code).is_ok() {
            let _unheard = answer.1.write_all(&code);
        }
    })?;
    let mut control = own_stdin()?;
    spawn("control", move || {
        is_started();
        let passed = control
            .set_read_timeout(Some(PREPARED_TIMEOUT))
            .and_then(|()| receive(&mut control))
            // The output ends with the command, not with this process.
            .and_then(|command| silence().and_then(|()| frame(&command)))
            .and_then(|frame| (&waiting).write_all(&frame))
            .and_then(|()| control.set_read_timeout(None));
        if passed.is_ok() {
            await_byte(&mut control);
        }
        // A process that still waits for a command exits.
        let _gone = waiting.shutdown(Shutdown::Write);
        end();
    })
}

/// Tells the daemon the exit code of a command, if it still listens.
pub(super) fn report(code: u8) {
    let _unheard = own_stdin().and_then(|mut control| control.write_all(&[code]));
}

/// This process's stdin, where that is a socket.
pub(crate) fn own_stdin() -> io::Result<UnixStream> {
    Ok(UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// True if the other end of a socket is open.
pub(crate) fn is_open(socket: &UnixStream) -> bool {
    let mut byte = [0];
    let peeked = recv(socket, &mut byte[..], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    !matches!(peeked, Ok((_, 0)))
}

/// Lets go of the output that the command writes to as well.
pub(crate) fn silence() -> io::Result<()> {
    let null = std::fs::File::options().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}

/// Reads a command.
///
/// # Errors
/// If the stream ends before, or the command is too long.
pub(crate) fn receive(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length);
    if length > COMMAND_LIMIT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut command = vec![0; length as usize];
    stream.read_exact(&mut command)?;
    Ok(command)
}

/// Encodes a command for the control socket.
///
/// # Errors
/// If it is too long, or no program could be started with it.
pub(crate) fn frame(command: &[u8]) -> io::Result<Vec<u8>> {
    if command.contains(&0) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "nul byte found in provided data"));
    }
    let length = u32::try_from(command.len()).ok().filter(|length| *length <= COMMAND_LIMIT);
    let length = length.ok_or_else(|| io::Error::other("the command is too long"))?;
    Ok([&length.to_be_bytes(), command].concat())
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

fn await_byte(stream: &mut impl Read) {
    let mut byte = [0];
    while let Err(error) = stream.read(&mut byte) {
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
