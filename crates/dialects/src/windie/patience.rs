//! How long a client has for what it is asked to run.

use std::collections::BTreeMap;
use std::time::Duration;

use quintet_kernel::toolset::Span;

/// For a call, usually.
pub(crate) const USUAL: Duration = Duration::from_secs(120);
/// For anything, at most, in seconds.
const LONGEST: u64 = 900;
/// How long a command may take that does not say, in seconds.
const COMMAND: u64 = 120;
/// How long the client may take beside the command, in seconds.
const BESIDE: u64 = 15;

/// The calls that say themselves how long they take: commands that are waited for.
pub(crate) fn spans() -> Vec<Span> {
    let seconds = [("terminate_after_seconds".into(), COMMAND), ("wait".into(), 0)];
    vec![Span {
        tool: "run_shell_command".into(),
        seconds: BTreeMap::from(seconds),
        spare: BESIDE,
        unless: Some("run_in_background".into()),
        at_most: LONGEST,
    }]
}

#[cfg(test)]
mod tests {
    use quintet_kernel::toolset::Toolset;
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(calls: &[(&str, &Value)], seconds: f64) {
        let timeout_ms = u64::try_from(USUAL.as_millis()).ok();
        let toolset = Toolset { timeout_ms, spans: spans(), ..Toolset::default() };
        let span = toolset.timeout(calls.iter().copied());
        assert_eq!(span, Some(Duration::from_secs_f64(seconds)), "{calls:?}");
    }

    #[test]
    fn a_call_has_two_minutes() {
        check(&[("mouse_control", &json!({ "terminate_after_seconds": 500 }))], 120.0);
        check(&[("run_shell_command", &json!({ "run_in_background": true }))], 120.0);
    }

    #[test]
    fn a_command_that_is_waited_for_has_as_long_as_it_says() {
        let run = |input: Value, seconds| check(&[("run_shell_command", &input)], seconds);
        run(json!({ "run_in_background": false }), 135.0);
        run(json!({ "terminate_after_seconds": 300, "wait": 2.5 }), 317.5);
        run(json!({ "terminate_after_seconds": 1000 }), 900.0);
        run(json!("no object"), 135.0);
    }

    #[test]
    fn a_bundle_has_the_sum_of_its_commands_within_bounds() {
        let (long, short) = (json!({ "terminate_after_seconds": 300 }), json!({}));
        let click = ("mouse_control", &short);
        let run = ("run_shell_command", &long);
        check(&[click, click], 120.0);
        check(&[click, run, click], 315.0);
        check(&[run, run], 630.0);
        check(&[run, run, run], 900.0);
    }
}
