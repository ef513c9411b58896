//! Timeouts of single calls and of bundles.

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
