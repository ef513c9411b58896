//! The subcommand that confines itself and becomes the command, or its init.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

use landlock::LandlockStatus;
use rustix::process::{Signal, set_parent_process_death_signal, setsid};

use super::root_fs::RootFs;
use super::seccomp_filter::{self, AllowedCalls};
use super::{Limits, Mode, Policy, init, landlock_rules, loopback, privileges};
use crate::supervisor::{code_of, control};

/// The first file that is not a standard stream.
const FIRST: i32 = 3;

/// The variable that contains the command's environment, as a JSON object. The command's variables are not
/// set for this program: some, such as `LD_PRELOAD`, could make it run other code before it is confined.
pub(crate) const VARIABLES: &str = "QUINTET_COMMAND_VARIABLES";

/// The exit code if nothing was run, as with `env` and `timeout`.
const NOTHING_RAN: u8 = 125;

/// Becomes `policy [--] program args…`; returns only if it cannot. With `awaits` the last argument is
/// read from stdin once everything is ready, and the exit code is sent back there.
///
/// Call it before any other thread is started: Landlock and seccomp apply only to the calling thread.
pub fn main(args: impl IntoIterator<Item = OsString>, awaits: bool) -> ExitCode {
    let mut args = args.into_iter().peekable();
    let policy = args.next().unwrap_or_default();
    args.next_if(|arg| arg == "--");
    let Some(program) = args.next() else {
        eprintln!("quintet: confine needs a policy and a command");
        return ExitCode::from(NOTHING_RAN);
    };
    let policy = match confine(&policy.to_string_lossy()) {
        Ok(policy) => policy,
        Err(why) => {
            eprintln!("quintet: the command was not run: {why}");
            return ExitCode::from(NOTHING_RAN);
        }
    };
    #[expect(clippy::disallowed_methods, reason = "this runs under the supervisor")]
    let mut command = Command::new(program);
    command.args(args);
    if let Err(error) = set_variables(&mut command) {
        eprintln!("quintet: the command was not run: {error}");
        return ExitCode::from(NOTHING_RAN);
    }
    let mut answer = None;
    if awaits {
        let received = control::own_stdin().and_then(|mut control| {
            let text = control::receive(&mut control)?;
            Ok((OsString::from_vec(text), control))
        });
        // Nobody had anything to run, or the supervisor was killed before this process could end with it.
        let received = received.ok().filter(|(_, control)| control::is_open(control));
        let Some((text, control)) = received else { return ExitCode::SUCCESS };
        command.arg(text).current_dir(&policy.workspace);
        answer = Some(control);
    }
    if policy.namespaces {
        return init::run(command, answer);
    }
    drop(answer);
    let error = if awaits { command.stdin(Stdio::null()).exec() } else { command.exec() };
    eprintln!("quintet: {}: {error}", command.get_program().display());
    ExitCode::from(code_of(&error))
}

/// Gives a command the variables that were passed on for it.
fn set_variables(command: &mut Command) -> Result<(), serde_json::Error> {
    let Some(variables) = std::env::var_os(VARIABLES) else { return Ok(()) };
    let variables: BTreeMap<String, String> = serde_json::from_slice(variables.as_bytes())?;
    command.env_remove(VARIABLES).envs(variables);
    Ok(())
}

/// Restricts this process to a policy. A kernel that cannot is forgiven unless the sandbox is required;
/// any other trouble is not.
fn confine(policy: &str) -> Result<Policy, String> {
    let policy: Policy = serde_json::from_str(policy).map_err(|error| error.to_string())?;
    // A killed supervisor cannot end the command, so the kernel must.
    let ends = set_parent_process_death_signal(Some(Signal::KILL));
    ends.map_err(|error| format!("end with the supervisor: {error}"))?;
    // The daemon may have inherited open files, to which no rule applies.
    close_fds::set_fds_cloexec(FIRST, &[]);
    // Without a terminal of its own the command has no way to the daemon's.
    setsid().map_err(|error| format!("session: {error}"))?;
    if policy.namespaces {
        let Policy { scratch, home, read, write, .. } = &policy;
        RootFs { scratch, home: home.as_deref(), read, write }.enter()?;
        if !policy.network {
            loopback::up().map_err(|error| format!("loopback: {error}"))?;
        }
    }
    restrict(&policy)?;
    Ok(policy)
}

/// Leaves this process nothing but its memory, its time and the files that are open.
pub(crate) fn withdraw(limits: Limits) -> Result<(), String> {
    restrict(&Policy::nothing(limits))
}

fn restrict(policy: &Policy) -> Result<(), String> {
    policy.limits.apply().map_err(|error| format!("limits: {error}"))?;
    privileges::give_up().map_err(|error| format!("privileges: {error}"))?;
    let landlock =
        landlock_rules::restrict(policy).map_err(|error| format!("Landlock: {error}"))?;
    let version = match landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            kernel_abi.unwrap_or(effective_abi as i32)
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => 0,
    };
    let is_required = policy.mode == Mode::Require;
    if is_required && version == 0 && !policy.namespaces {
        let why = "the sandbox is required, and this kernel has neither namespaces nor Landlock";
        return Err(why.to_owned());
    }
    match seccomp_filter::restrict(AllowedCalls::of(policy, version)) {
        Err(error) if is_required => Err(format!("the sandbox is required: {error}")),
        Ok(()) | Err(_) => Ok(()),
    }
}
