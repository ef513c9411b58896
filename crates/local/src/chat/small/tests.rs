//! Tests of the help for small models, which large ones do not get.

use std::sync::Arc;

use expect_test::expect;
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
use serde_json::json;

use super::{Hints, brief, brief_system, tools};

pub(super) fn tool(name: &str, required: &[&str]) -> Arc<ToolSpec> {
    let properties: serde_json::Map<_, _> =
        required.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    Arc::new(ToolSpec {
        name: name.into(),
        description: "Does something. And more.".into(),
        schema: json!({ "type": "object", "properties": properties, "required": required }),
        kind: ToolKind::Exec,
        placement: Placement::Daemon,
        strict: false,
    })
}

#[test]
fn few_daemon_tools_and_all_other_tools_are_offered() {
    let names = ["verify", "shell", "diagram", "read_file", "memory_get", "weather__today"];
    let offered: Vec<_> = names.iter().map(|name| tool(name, &["x"])).collect();
    let left: Vec<String> = tools(&offered).iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(left, ["read_file", "rename_everywhere", "shell", "weather__today"]);
}

#[test]
fn long_results_are_shortened() {
    assert_eq!(brief("shell", "ok"), "ok");
    let long = brief("shell", &format!("first{}last", "x".repeat(1_000_000)));
    assert!(long.len() < 2000 && long.starts_with("first") && long.ends_with("last"), "{long}");
    let file = brief("read_file", &format!("first{}last", "é".repeat(1_000_000)));
    assert!(file.starts_with("first") && file.contains("use search"), "{}", file.len());
    assert!(file.chars().count() < 8100);
}

#[test]
fn hints_say_what_to_do_with_a_result() {
    let hint =
        |wants_change, changed, ok| Hints { wants_change, changed, ..Hints::default() }.after(ok);
    expect![[r#"
        Use this to answer my question in plain words now. Call another function only if the question cannot be answered without it.
        Now go on with the function call that does what I asked for.
        If all that I asked for is done now, answer in one short sentence. If not, go on with the next function call.
        That did not work. Go on with a corrected function call.
        That does not work yet. Go on with the function call that puts it right.
    "#]]
    .assert_eq(&format!(
        "{}\n{}\n{}\n{}\n{}\n",
        hint(false, false, true),
        hint(true, false, true),
        hint(true, true, true),
        hint(true, true, false),
        hint(true, false, false),
    ));
}

#[test]
fn missing_files_are_reported_unless_the_question_is_general() {
    let hint = |asks_workspace, wants_change| {
        Hints { asks_workspace, wants_change, missing: true, ..Hints::default() }.after(false)
    };
    assert!(hint(true, false).contains("is not there"));
    assert!(hint(false, true).contains("is not there"));
    assert!(hint(false, false).contains("from what you know"));
}

#[test]
fn the_workspace_description_is_shortened() {
    let system =
        format!("Be kind.\n\nWorkspace context:\nREPO TREE:\n{}", "src/änderung.rs\n".repeat(500));
    let shortened = brief_system(&system);
    assert!(
        shortened.len() < 950 && shortened.starts_with("Be kind.") && shortened.ends_with(".rs"),
        "{shortened}"
    );
    assert_eq!(brief_system("Be kind."), "Be kind.");
    let long = "x".repeat(5000);
    assert_eq!(brief_system(&long), long, "instructions are never shortened");
}
