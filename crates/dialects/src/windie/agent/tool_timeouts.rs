//! How long a client may take for a call.

use std::time::Duration;

use quintet_kernel::toolset::CallTimeout;

/// How long a client has for a call, unless the tool says otherwise.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// The longest time for any call.
const TIMEOUT_LIMIT_SECONDS: u64 = 900;
/// How long a command may take that names no time.
const COMMAND_SECONDS: u64 = 120;
/// How long the client may take in addition to the command.
const EXTRA_SECONDS: u64 = 15;

/// The timeout of commands, which say how long they take unless they run in the background.
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
