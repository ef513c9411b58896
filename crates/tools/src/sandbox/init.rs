//! The first process of a command's process namespace: starts the command, reaps what it leaves behind,
//! and takes the whole namespace along when it ends.

use std::fs;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{self, Pid, Signal, WaitOptions, kill_process};

use crate::supervisor::{code_of, control};

/// How long processes may take to end themselves after they were asked to, and how often is looked.
const TERMINATION_GRACE: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(2);

/// Runs a command and exits with its code. Remaining processes get SIGTERM, and are then killed by the kernel with
/// this process. The code is also sent on `answer`, as soon as no process is left.
pub(super) fn run(mut command: Command, answer: Option<UnixStream>) -> ExitCode {
    let code = match command.stdin(Stdio::null()).spawn() {
        Ok(child) => {
            if answer.is_some()
                && let Err(error) = control::silence()
            {
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
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for pid in pids.filter(|pid| *pid != 1).filter_map(Pid::from_raw) {
        let _gone = kill_process(pid, Signal::TERM);
    }
    let mut left = TERMINATION_GRACE;
    while has_children() && !left.is_zero() {
        thread::sleep(TICK);
        left = left.saturating_sub(TICK);
    }
}

/// Reaps the dead; true if others live.
fn has_children() -> bool {
    loop {
        match process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
