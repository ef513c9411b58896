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
mod tests {
    use quintet_kernel::toolset::Toolset;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(calls: &[(&str, Value)], seconds: f64) {
        let timeout_ms = u64::try_from(DEFAULT_TIMEOUT.as_millis()).ok();
        let tools = Toolset { timeout_ms, spans: vec![of_commands()], ..Toolset::default() };
        let has = tools.timeout(calls.iter().map(|(tool, input)| (*tool, input)));
        assert_eq!(has, Some(Duration::from_secs_f64(seconds)), "{calls:?}");
    }

    #[test]
    fn a_call_has_two_minutes() {
        check(&[("mouse_control", json!({ "terminate_after_seconds": 500 }))], 120.0);
        check(&[("run_shell_command", json!({ "run_in_background": true }))], 120.0);
    }

    #[test]
    fn a_command_that_is_waited_for_has_as_long_as_it_says() {
        let run = |input| [("run_shell_command", input)];
        check(&run(json!({ "run_in_background": false })), 135.0);
        check(&run(json!({ "terminate_after_seconds": 10, "wait": 2.5 })), 27.5);
        check(&run(json!({ "terminate_after_seconds": 1e6 })), 900.0);
        check(&run(json!("no object")), 135.0);
    }

    #[test]
    fn a_bundle_has_the_sum_of_its_commands_within_bounds() {
        let click = ("mouse_control", json!({}));
        let run = ("run_shell_command", json!({ "terminate_after_seconds": 300 }));
        check(&[click.clone(), click.clone()], 120.0);
        check(&[click.clone(), run.clone(), click], 315.0);
        check(&[run.clone(), run.clone()], 630.0);
        check(&[run.clone(), run.clone(), run], 900.0);
    }
}
