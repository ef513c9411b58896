//! The subcommand that confines itself and becomes the command.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use landlock::LandlockStatus;

use super::{Limits, Mode, Policy, calls, files, privileges};
use crate::supervisor::code_of;

/// The first file that is not a standard stream.
const FIRST: i32 = 3;

/// What the exit code of `env` and `timeout` means, too: nothing was run.
const NOTHING_RAN: u8 = 125;

/// Becomes `policy [--] program args…`; returns only if it cannot.
///
/// Call it before any other thread is started: Landlock and seccomp hold for the thread that asks.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter().peekable();
    let policy = args.next().unwrap_or_default();
    args.next_if(|arg| arg == "--");
    let Some(program) = args.next() else {
        eprintln!("quintet: confine needs a policy and a command");
        return ExitCode::from(NOTHING_RAN);
    };
    if let Err(why) = confine(&policy.to_string_lossy()) {
        eprintln!("quintet: the command was not run: {why}");
        return ExitCode::from(NOTHING_RAN);
    }
    ExitCode::from(become_command(&program, args))
}

#[expect(clippy::disallowed_methods, reason = "this runs under the supervisor")]
fn become_command(program: &OsString, args: impl Iterator<Item = OsString>) -> u8 {
    let error = Command::new(program).args(args).exec();
    eprintln!("quintet: {}: {error}", program.display());
    code_of(&error)
}

/// Restricts this process. A kernel that cannot is forgiven unless the sandbox is required; any
/// other trouble is not.
fn confine(policy: &str) -> Result<(), String> {
    let policy: Policy = serde_json::from_str(policy).map_err(|error| error.to_string())?;
    // Whoever started the daemon may have left it files that are open; no rule would hold for them.
    close_fds::set_fds_cloexec(FIRST, &[]);
    restrict(&policy)
}

/// Leaves this process nothing but its memory, its time and the files that are open.
pub(crate) fn withdraw(limits: Limits) -> Result<(), String> {
    let (read, write) = (Vec::new(), Vec::new());
    let (mode, network) = (Mode::Prefer, false);
    restrict(&Policy { mode, network, read, write, limits })
}

fn restrict(policy: &Policy) -> Result<(), String> {
    policy.limits.apply().map_err(|error| format!("limits: {error}"))?;
    privileges::give_up().map_err(|error| format!("privileges: {error}"))?;
    let landlock = files::restrict(policy).map_err(|error| format!("Landlock: {error}"))?;
    let is_required = policy.mode == Mode::Require;
    if is_required && !matches!(landlock, LandlockStatus::Available { .. }) {
        return Err("the sandbox is required, and this kernel has no Landlock".to_owned());
    }
    match calls::restrict(policy.network) {
        Err(error) if is_required => Err(format!("the sandbox is required: {error}")),
        Ok(()) | Err(_) => Ok(()),
    }
}
