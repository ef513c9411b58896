//! The first process of a command's process namespace: starts the command, reaps what it leaves behind,
//! and takes the whole namespace along when it ends.

use std::ffi::OsString;
use std::fs;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::supervisor::code_of;

/// How long processes may take to end themselves after they were asked to, and how often is looked.
const GRACE: Duration = Duration::from_millis(200);
const TICK: Duration = Duration::from_millis(2);

/// Runs a command and ends with its code; what it left behind is asked to end, and then killed by the
/// kernel with this process.
pub(super) fn run(program: &OsString, args: impl Iterator<Item = OsString>) -> ExitCode {
    #[expect(clippy::disallowed_methods, reason = "this runs under the supervisor")]
    let started = Command::new(program).args(args).spawn();
    let child = match started {
        Ok(child) => Pid::from_child(&child),
        Err(error) => {
            eprintln!("quintet: {}: {error}", program.display());
            return ExitCode::from(code_of(&error));
        }
    };
    let code = loop {
        match waitpid(None, WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                break status.exit_status().or(signal).unwrap_or(125);
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => break 125,
        }
    };
    end_the_rest();
    ExitCode::from(u8::try_from(code).unwrap_or(125))
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
    let mut left = GRACE;
    while has_children() && !left.is_zero() {
        thread::sleep(TICK);
        left = left.saturating_sub(TICK);
    }
}

/// Reaps the dead; true if others live.
fn has_children() -> bool {
    loop {
        match waitpid(None, WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}
