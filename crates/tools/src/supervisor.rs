//! The small process between the daemon and a command: it ends the command's whole process tree.
//!
//! The daemon holds the other end of the supervisor's stdin open. The tree is ended when the daemon closes it
//! or dies, and when the command exits, because background processes must not outlive the call. [`Control`]
//! says what else arrives on stdin: nothing, the input of a server, or the text of the command. The last is
//! for a sandbox that is prepared in advance, because setting it up takes longer than most short commands.
//!
//! ```text
//! daemon ── control socket ── supervisor ── confine (first of its process namespace) ── command
//! ```
//!
//! Threads wait for the daemon (or a signal) and only send signals; the main thread waits, reaps and sweeps. The
//! command stays a zombie until the sweep has ended, so that its pid, which is also the id of its process group,
//! cannot be reused.
//!
//! The supervisor creates the command's namespaces, except the mount namespace, and is otherwise unconfined.
//! It starts `confine`, which sets up the rest of the sandbox and starts the command. If the supervisor is
//! killed, the kernel kills `confine`, and with it every process in the process namespace.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, thread};

use rustix::process::{Pid, Resource, Signal, getpid, getrlimit, set_child_subreaper, setrlimit};

use crate::sandbox::{self, Network};

pub(crate) mod control;
mod proc;
mod tree;

pub(crate) use tree::kill_tree;

/// The hidden subcommand of the executable that starts the supervisor.
pub(crate) const SUBCOMMAND: &str = "supervise";

/// The soft limit of open files of a command.
const OPEN_FILES_LIMIT: u64 = 1024;

/// How long a server may take to exit after its stdin ended.
const LEAVE_GRACE: Duration = Duration::from_millis(500);

/// What arrives on the supervisor's stdin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// Any byte, or the end, ends the command, which has no input.
    #[default]
    HoldOpen,
    /// The bytes are the command's input; the end ends the command.
    ForwardInput,
    /// The first bytes are the command's last argument; any later byte, or the end, ends the command, which
    /// has no input. Stdin is a socket, on which the exit code is sent back.
    AwaitCommand,
}

/// The running command; `None` before it starts and after it ended.
type Leader = Arc<Mutex<Option<Pid>>>;

/// How a command is started, and what is done after it.
#[derive(Debug, Default)]
pub struct Setup {
    /// A directory to remove after the command.
    pub scratch: Option<PathBuf>,
    /// The network of the namespaces that the command gets, if it gets any.
    pub namespaces: Option<Network>,
    /// True if the command creates its own session, and with it a process group.
    pub confined: bool,
    /// What arrives on stdin.
    pub control: Control,
}

/// Runs `[--] program args…` until it ends or stdin does, and leaves nothing behind: neither
/// processes nor the scratch directory, if there is one.
///
/// The code is the command's own, 128 and its signal if one killed it, or 125 to 127 (as with
/// `env` and `timeout`) if it could not be run. Call it before any other thread is started.
pub fn main(setup: Setup, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let _in_use = setup.scratch.as_deref().and_then(sandbox::scratch::lock);
    let code = run(&setup, args);
    if setup.control == Control::AwaitCommand {
        control::report(code);
    }
    if let Some(scratch) = setup.scratch {
        // What cannot be removed is left to the system's cleanup of temporary files.
        let _rest = fs::remove_dir_all(scratch);
    }
    ExitCode::from(code)
}

fn run(setup: &Setup, args: impl IntoIterator<Item = OsString>) -> u8 {
    let mut argv = args.into_iter().peekable();
    argv.next_if(|arg| arg == "--");
    let Some(program) = argv.next() else {
        eprintln!("quintet: supervise needs a command");
        return 125;
    };
    if let Some(network) = setup.namespaces
        && let Err(error) = sandbox::enter(network)
    {
        eprintln!("quintet: the command was not run: namespaces: {error}");
        return 125;
    }
    match supervise(setup, &program, argv.collect()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("quintet: {}: {error}", program.display());
            code_of(&error)
        }
    }
}

fn supervise(setup: &Setup, program: &OsString, args: Vec<OsString>) -> io::Result<u8> {
    // Descendants that lose their parent become children of this process, however they were
    // started, so that none can slip away by forking twice or by leaving the group.
    set_child_subreaper(Some(getpid()))?;
    usual_open_files()?;
    let leader = Leader::default();
    let pid = {
        // A stop request may arrive at once; it waits for this lock until there is a process to signal.
        let mut started = lock(&leader);
        let (ended, left) = (leader.clone(), leader.clone());
        let stdin = match setup.control {
            Control::HoldOpen => {
                control::hold_open(move || end(&ended))?;
                Stdio::null()
            }
            Control::ForwardInput => {
                let (reader, writer) = io::pipe()?;
                control::forward(writer, move || leave(&left), move || end(&ended))?;
                reader.into()
            }
            Control::AwaitCommand => {
                let (ours, theirs) = UnixStream::pair()?;
                control::pass_command(ours, move || drop(lock(&left)), move || end(&ended))?;
                OwnedFd::from(theirs).into()
            }
        };
        if setup.namespaces.is_some() {
            sandbox::enter_processes()?;
        }
        *started.insert(start(setup, (program, args), stdin)?)
    };
    tree::await_exit(pid)?;
    *lock(&leader) = None;
    tree::sweep(pid);
    tree::code(pid)
}

/// The daemon raises its own limit; programs that still use `select` need the usual one.
fn usual_open_files() -> io::Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = Some(limit.current.map_or(OPEN_FILES_LIMIT, |now| now.min(OPEN_FILES_LIMIT)));
    Ok(setrlimit(Resource::Nofile, limit)?)
}

#[expect(clippy::disallowed_methods, reason = "this is the supervisor that others must go through")]
fn start(
    setup: &Setup,
    (program, args): (&OsString, Vec<OsString>),
    stdin: Stdio,
) -> io::Result<Pid> {
    let mut command = Command::new(program);
    command.args(args).stdin(stdin);
    if !setup.confined {
        command.process_group(0);
    }
    Ok(Pid::from_child(&command.spawn()?))
}

/// Waits a moment for a server to exit, then ends it.
fn leave(leader: &Leader) {
    const TICK: Duration = Duration::from_millis(10);
    let mut waited = Duration::ZERO;
    while waited < LEAVE_GRACE && lock(leader).is_some() {
        thread::sleep(TICK);
        waited += TICK;
    }
    end(leader);
}

/// Ends the leader, if there is one: first politely, then for certain.
fn end(leader: &Leader) {
    signal(leader, Signal::TERM);
    thread::sleep(tree::TERMINATION_GRACE);
    signal(leader, Signal::KILL);
}

fn signal(leader: &Leader, signal: Signal) {
    // The lock is held while signalling: the pid is the leader's as long as it is in there.
    if let Some(pid) = *lock(leader) {
        tree::signal_group(pid, signal);
    }
}

fn lock(leader: &Leader) -> std::sync::MutexGuard<'_, Option<Pid>> {
    leader.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The code of a command that could not be run.
pub(crate) fn code_of(error: &io::Error) -> u8 {
    match error.kind() {
        io::ErrorKind::NotFound => 127,
        io::ErrorKind::PermissionDenied => 126,
        _ => 125,
    }
}
