//! How long a client has for what it is asked to run.

use std::time::Duration;

use serde_json::Value;

/// For a call, usually.
pub(crate) const USUAL: Duration = Duration::from_secs(120);
/// For anything, at most.
const LONGEST: Duration = Duration::from_secs(900);
/// How long a command may take that does not say.
const COMMAND: f64 = 120.0;
/// How long the client may take beside the command.
const BESIDE: f64 = 15.0;

/// For one call.
pub(crate) fn of_call(tool: &str, input: &Value) -> Duration {
    command(tool, input).unwrap_or(USUAL).min(LONGEST)
}

/// For several calls, one after the other.
pub(crate) fn of_bundle<'a>(calls: impl Iterator<Item = (&'a str, &'a Value)>) -> Duration {
    let commands = calls.filter_map(|(tool, input)| command(tool, input));
    let sum = commands.fold(Duration::ZERO, Duration::saturating_add);
    sum.clamp(USUAL, LONGEST)
}

/// How long a command that is waited for may take; nothing if it is none.
fn command(tool: &str, input: &Value) -> Option<Duration> {
    let waited_for = tool == "run_shell_command" && input["run_in_background"] != true;
    let seconds = |name: &str| input[name].as_f64().filter(|seconds| *seconds >= 0.0);
    let takes = seconds("terminate_after_seconds").unwrap_or(COMMAND);
    let waits = seconds("wait").unwrap_or(0.0);
    let longest = LONGEST.as_secs_f64();
    waited_for.then(|| Duration::from_secs_f64((takes + waits + BESIDE).min(longest)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(tool: &str, input: &Value, seconds: f64) {
        assert_eq!(of_call(tool, input), Duration::from_secs_f64(seconds), "{tool} {input}");
    }

    #[test]
    fn a_call_has_two_minutes() {
        check("mouse_control", &json!({ "terminate_after_seconds": 500 }), 120.0);
        check("run_shell_command", &json!({ "run_in_background": true }), 120.0);
    }

    #[test]
    fn a_command_that_is_waited_for_has_as_long_as_it_says() {
        check("run_shell_command", &json!({ "run_in_background": false }), 135.0);
        check("run_shell_command", &json!({ "terminate_after_seconds": 10, "wait": 2.5 }), 27.5);
        check("run_shell_command", &json!({ "terminate_after_seconds": 1e300 }), 900.0);
        check("run_shell_command", &json!({ "terminate_after_seconds": -4 }), 135.0);
        check("run_shell_command", &json!("no object"), 135.0);
    }

    #[test]
    fn a_bundle_has_the_sum_of_its_commands_within_bounds() {
        let (long, short) = (json!({ "terminate_after_seconds": 300 }), json!({}));
        let click = ("mouse_control", &short);
        let run = ("run_shell_command", &long);
        let seconds = |calls: &[(&str, &Value)]| of_bundle(calls.iter().copied()).as_secs();
        assert_eq!(seconds(&[click, click]), 120);
        assert_eq!(seconds(&[click, run, click]), 315);
        assert_eq!(seconds(&[run, run]), 630);
        assert_eq!(seconds(&[run, run, run]), 900);
    }
}
