//! What models are told of what clients ran.

use quintet_kernel::message::text_of;
use quintet_kernel::tool::Ending;
use serde_json::json;

use super::*;
use crate::windie::fields::read;

fn result(payload: Value) -> ToolResult {
    read("payload", &payload, ToolResult::of).unwrap()
}

fn bundle(payload: Value) -> BundleResult {
    read("payload", &payload, BundleResult::of).unwrap()
}

/// How an outcome ended, what its error is, and what the model reads.
fn told(outcome: &Outcome) -> (Ending, Option<&str>, String) {
    (outcome.ending, outcome.error.as_deref(), text_of(&outcome.parts))
}

fn calls(tools: &[&str]) -> Vec<(CallId, String)> {
    let call =
        |(n, tool): (usize, &&str)| (CallId::parse(&format!("c{n}")).unwrap(), (*tool).to_owned());
    tools.iter().enumerate().map(call).collect()
}

#[test]
fn a_result_of_the_specification() {
    let result = result(json!({
        "request_id": "req-123", "success": true, "error": null,
        "data": {
            "output": "Clicked submit button", "screenshot_ref": "1f2c.jpg", "screenshot": "aGk=",
            "capture_meta": { "frame_id": "frame-1" }, "anything": 1,
            "system_state": { "active_window": "Browser", "mouse_position": "(100, 200)" },
            "system_state_internal": { "screen_resolution": "secret" },
        },
    }));
    assert_eq!(result.call, "req-123");
    assert_eq!(result.picture, Some(Picture::Artifact("1f2c.jpg".into())));
    let text = "Clicked submit button\n\n<system_state>\nactive_window: Browser\n\
        mouse_position: (100, 200)\n</system_state>";
    assert_eq!(told(&result.outcome), (Ending::Succeeded, None, text.into()));
    assert_eq!(without_desktop(text), ("Clicked submit button", Some("Browser")));
    assert_eq!(without_desktop("Clicked"), ("Clicked", None));
}

#[test]
fn a_failure_is_told_with_what_there_is() {
    let failed = |data: Value, error: Value| {
        result(json!({ "request_id": "r", "success": false, "data": data, "error": error })).outcome
    };
    let check = |outcome: Outcome, error: &str, text: &str| {
        assert_eq!(told(&outcome), (Ending::Failed, Some(error), text.into()));
    };
    check(failed(json!(null), json!(null)), "the tool failed", "the tool failed");
    check(failed(json!(null), json!("no such window")), "no such window", "no such window");
    check(failed(json!({ "output": "log" }), json!("exit 1")), "exit 1", "exit 1\nlog");
    check(
        failed(json!({ "output": "it broke: exit 1" }), json!("exit 1")),
        "exit 1",
        "it broke: exit 1",
    );
    check(failed(json!({ "output": "a\nb" }), json!(null)), "a", "a\nb");
}

#[test]
fn output_can_be_anything_and_is_cut() {
    let output = |output: Value| {
        let result =
            result(json!({ "request_id": "r", "success": true, "data": { "output": output } }));
        text_of(&result.outcome.parts)
    };
    assert_eq!(output(json!({ "exit_code": 0 })), "{\"exit_code\":0}");
    assert_eq!(output(json!("a\0b")), "ab");
    let long = output(json!("é".repeat(40_000)));
    assert!(long.ends_with("é\n[the rest is left out]") && long.len() < 66_000);
    let inline = result(
        json!({ "request_id": "r", "success": true, "data": { "output": "", "screenshot": "aGk=" } }),
    );
    assert_eq!(inline.picture, Some(Picture::Inline("aGk=".into())));
}

#[test]
fn steps_are_the_calls_in_their_order() {
    let bundle = bundle(json!({
        "bundle_id": "c0", "status": "success", "screenshot_ref": "s.jpg", "error": null,
        "system_state": { "active_window": "Editor" },
        "step_results": [
            { "tool": "mouse_control", "status": "ok", "output": "clicked", "debug_trace": "x" },
            { "tool": "run_shell_command", "status": "ok", "output": { "stdout": "line-1" }, "more": 1 },
            { "tool": "wait", "status": "ok" },
        ],
    }));
    assert_eq!(bundle.picture, Some(Picture::Artifact("s.jpg".into())));
    let came = bundle.outcomes(&calls(&["mouse_control", "run_shell_command", "wait"]));
    let texts: Vec<String> = came.iter().map(|came| text_of(&came.outcome.parts)).collect();
    assert_eq!(texts[..2], ["clicked", "{\"stdout\":\"line-1\"}"]);
    let last = "Tool wait executed successfully (no output).\n\n<system_state>\nactive_window: Editor\n</system_state>";
    assert_eq!(texts[2], last);
    assert_eq!(came.iter().map(|came| came.pictured).collect::<Vec<_>>(), [false, false, true]);
}

#[test]
fn calls_without_a_step_were_not_run() {
    let half = bundle(json!({
        "bundle_id": "b", "status": "partial_failure", "error": "stopped after a failure",
        "step_results": [
            { "tool": "mouse_control", "status": "ok", "output": "clicked" },
            { "tool": "keyboard_control", "status": "error", "output": "no focus", "error": "no focus" },
        ],
    }));
    let came = half.outcomes(&calls(&["mouse_control", "keyboard_control", "wait"]));
    let told: Vec<_> = came.iter().map(|came| told(&came.outcome)).collect();
    assert_eq!(told[1], (Ending::Failed, Some("no focus"), "no focus".into()));
    let reason = "not run: stopped after a failure";
    assert_eq!(told[2], (Ending::Failed, Some(reason), reason.into()));
    assert!(came[1].pictured && !came[2].pictured);
    let none = bundle(json!({ "bundle_id": "b", "status": "failure", "step_results": [] }));
    let came = none.outcomes(&calls(&["wait"]));
    assert_eq!(came[0].outcome.error.as_deref(), Some("not run"));
}

#[test]
fn a_step_of_another_tool_is_not_taken_for_a_call() {
    let skips = bundle(json!({
        "bundle_id": "b", "status": "partial_failure",
        "step_results": [{ "tool": "wait", "status": "ok", "output": "waited" }, { "tool": "x", "status": "ok" }],
    }));
    let came = skips.outcomes(&calls(&["mouse_control", "wait"]));
    assert_eq!(came[0].outcome.error.as_deref(), Some("not run"));
    assert_eq!(text_of(&came[1].outcome.parts), "waited");
    let came = skips.outcomes(&calls(&["x"]));
    assert!(came[0].outcome.ok());
}
