//! The first process of a command's process namespace: starts the command and reaps orphans.
//!
//! When it ends, the kernel kills all other processes in the namespace.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{self, Pid, Signal, WaitOptions, getpid, kill_process};

use crate::supervisor::{code_of, control};

/// How long processes may take to end themselves after they were asked to, and how often is looked.
const TERMINATION_GRACE: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(2);

/// Runs a command and exits with its code. Remaining processes get SIGTERM, and are then killed by the kernel with
/// this process. The code is also sent on `answer`, as soon as no process is left; stdin is then the other end of
/// that, and otherwise the command's.
pub(super) fn run(mut command: Command, answer: Option<UnixStream>) -> ExitCode {
    if answer.is_some() {
        command.stdin(Stdio::null());
    }
    let code = match command.spawn() {
        Ok(child) => {
            if let Err(error) = release_streams() {
                eprintln!("quintet: {error}");
            }
            let code = wait(Pid::from_child(&child));
            end_the_rest();
            code
        }
        Err(error) => {
            eprintln!("quintet: {}: {error}", command.get_program().display());
            code_of(&error)
        }
    };
    if let Some(mut answer) = answer.filter(|_| !has_children()) {
        let _unheard = answer.write_all(&[code]);
    }
    ExitCode::from(code)
}

/// Lets go of the standard streams, which are the command's alone: a pipe that it closes must be closed.
fn release_streams() -> io::Result<()> {
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    control::silence()
}

/// Reaps whatever ends, until the command does. Programs may leave the process group, as `timeout` does.
fn wait(command: Pid) -> u8 {
    let code = loop {
        match process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                break status.exit_status().or(signal);
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break None,
        }
    };
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(125)
}

fn end_the_rest() {
    if !has_children() {
        return;
    }
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    let listed = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in signalled(getpid(), listed) {
        let _gone = kill_process(pid, Signal::TERM);
    }
    let mut left = TERMINATION_GRACE;
    while has_children() && !left.is_zero() {
        thread::sleep(TICK);
        left = left.saturating_sub(TICK);
    }
}

/// The processes that get SIGTERM: all others of a namespace whose first process this is. Anywhere else `/proc`
/// lists processes that have nothing to do with the command, and none is signalled.
fn signalled(own: Pid, listed: impl Iterator<Item = i32>) -> impl Iterator<Item = Pid> {
    listed.filter(move |pid| own == Pid::INIT && *pid > 1).filter_map(Pid::from_raw)
}

/// Reaps children that have ended; true if others are still running.
fn has_children() -> bool {
    loop {
        match process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_process_of_a_namespace_signals_the_others() {
        let pids = |own| -> Vec<i32> {
            let own = Pid::from_raw(own).unwrap();
            signalled(own, [1, 2, 77].into_iter()).map(Pid::as_raw_pid).collect()
        };
        assert_eq!(pids(1), [2, 77]);
        assert_eq!(pids(2), [0; 0]);
        assert_eq!(pids(77), [0; 0]);
    }
}
