//! A call with wrong arguments is over before it starts, whatever the tool.

use quintet_kernel::tool::{Ending, Risk};
use serde_json::json;

use crate::bench::{Bench, text};

#[tokio::test]
async fn wrong_arguments_settle_the_call_and_never_run() {
    let bench = Bench::new();
    let input = json!({ "path": 7, "old": "a", "replace_all": "yes", "mode": 1 });
    let why = "invalid input: /new is required; /path: 7 is not of type \"string\"; \
               /replace_all: \"yes\" is not of type \"boolean\"; /mode is unknown";
    let shown = bench.assess("edit_file", input.clone()).await;
    assert_eq!((shown.risk, shown.preview.as_str()), (Risk::Low, ""));
    let settled = shown.settled.unwrap();
    assert_eq!((settled.ending, settled.error.as_deref()), (Ending::Failed, Some(why)));
    let output = bench.run("edit_file", input).await;
    assert_eq!((output.outcome.ending, text(&output).as_str()), (Ending::Failed, why));
}

#[tokio::test]
async fn limits_hold_and_text_is_no_number() {
    let bench = Bench::new();
    for (tool, input, why) in [
        (
            "search",
            json!({ "query": "x", "max_results": 5000 }),
            "/max_results: 5000 is greater than the maximum of 1000",
        ),
        (
            "read_file",
            json!({ "path": "x", "start_line": "1" }),
            "/start_line: \"1\" is not of type \"integer\"",
        ),
        (
            "shell",
            json!({ "command": "touch x", "timeout_seconds": 0 }),
            "/timeout_seconds: 0 is less than or equal to the minimum of 0",
        ),
        ("shell", json!("touch x"), "\"touch x\" is not of type \"object\""),
    ] {
        assert_eq!(bench.tell(tool, input).await, format!("! invalid input: {why}"));
    }
    assert!(bench.snapshot().is_empty());
}

#[tokio::test]
async fn what_models_send_for_nothing_is_nothing() {
    let bench = Bench::new();
    bench.write("f", "a\nb\n");
    let all = bench.tell("read_file", json!({ "path": "f" })).await;
    let input = json!({ "path": "f", "start_line": null, "end_line": null });
    assert_eq!(bench.tell("read_file", input.clone()).await, all);
    assert_eq!(bench.assess("read_file", input).await.settled, None);
    assert_eq!(bench.tell("list_dir", json!(null)).await, "f (4 bytes)\n");
    let first = bench.tell("read_file", json!({ "path": "f", "end_line": 1.0 })).await;
    assert!(first.contains('a') && !first.contains("b\n"), "{first}");
}

#[tokio::test]
async fn every_tool_is_checked() {
    let bench = Bench::new();
    for name in bench.tools() {
        let got = bench.tell(&name, json!(7)).await;
        assert_eq!(got, "! invalid input: 7 is not of type \"object\"", "{name}");
    }
}
