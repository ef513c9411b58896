//! How long a client may take for a call.

use std::time::Duration;

use quintet_kernel::toolset::CallTimeout;

/// The time limit of a call whose tool has no other.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest time for any call.
const TIMEOUT_LIMIT_SECONDS: u64 = 900;
/// The time limit of a command that names none.
const COMMAND_SECONDS: u64 = 120;
/// The time that the client may take in addition to the command.
const EXTRA_SECONDS: u64 = 15;

/// The time limit of commands, from their arguments, unless they run in the background.
pub(crate) fn of_commands() -> CallTimeout {
    let seconds = [("terminate_after_seconds".to_owned(), COMMAND_SECONDS), ("wait".to_owned(), 0)];
    CallTimeout {
        tool: "run_shell_command".into(),
        seconds: seconds.into(),
        spare: EXTRA_SECONDS,
        unless: Some("run_in_background".into()),
        at_most: TIMEOUT_LIMIT_SECONDS,
    }
}

#[cfg(test)]
mod tests;
