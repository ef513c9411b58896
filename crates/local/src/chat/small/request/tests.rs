//! Tests of the analysis of a conversation.

use std::sync::Arc;

use quintet_kernel::CallId;
use quintet_kernel::model::{
    AssistantPart, ModelRef, Prompt, PromptCall, PromptMessage, PromptPart, Sampling, WebSearch,
};
use serde_json::{Value, json};

use super::Request;
use crate::chat::small::tests::tool;

pub(in crate::chat::small) fn user(text: &str) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

/// A call and its result.
pub(in crate::chat::small) fn called(
    id: &str,
    tool: &str,
    input: Value,
    text: &str,
    ok: bool,
) -> [PromptMessage; 2] {
    let call = CallId::parse(id).unwrap();
    let asked = PromptCall::new(call.clone(), tool, input);
    let (tool, text, media) = (tool.into(), text.into(), Vec::new());
    [
        PromptMessage::Assistant { by: None, parts: vec![AssistantPart::Call(asked)] },
        PromptMessage::Result { call, tool, text, media, ok },
    ]
}

fn request(messages: impl IntoIterator<Item = PromptMessage>) -> Request {
    Request::of(&Prompt {
        model: ModelRef { provider: "local".into(), model: "default".into() },
        system: String::new(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: Vec::new(),
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling::default(),
        account: None,
    })
}

#[test]
fn files_are_known_as_last_read() {
    let path = json!({ "path": "./a.py" });
    let edit = json!({ "path": "a.py", "old": "1", "new": "2" });
    let read = called("c1", "read_file", path.clone(), "x = 1\n", true);
    let edited = called("c2", "edit_file", edit, "changed", true);
    let seen = request([user("Fix a.py")].into_iter().chain(read.clone()).chain(edited));
    assert_eq!(seen.files["a.py"], "x = 2\n");
    assert!(seen.wants_change && seen.changed && seen.steps == 2);
    let cut = "x\n[lines 1 to 1; 9 more bytes follow; go on with start_line 2]";
    assert!(request(called("c1", "read_file", path, cut, true)).files.is_empty());
    let shell = called("c3", "shell", json!({ "command": "rm a.py" }), "", true);
    assert!(request(read.into_iter().chain(shell)).files.is_empty());
}

#[test]
fn a_call_without_new_information_is_a_repetition() {
    let list = |id: &str| called(id, "list_dir", json!({}), "a.py", true);
    let once = request([user("hello")].into_iter().chain(list("c1")));
    let twice = request([user("hello")].into_iter().chain(list("c1")).chain(list("c2")));
    assert_eq!((once.repeats, twice.repeats), (0, 1));
    let new =
        [user("hello")].into_iter().chain(list("c1")).chain([user("again")]).chain(list("c2"));
    assert_eq!(request(new).repeats, 0, "another request, another look");
}

#[test]
fn files_that_a_request_names_are_read_first() {
    let tools = [tool("read_file", &["path"])];
    let reads = |text: &str, tree: &str| request([user(text)]).first_reads(tree, &tools);
    let tree = "REPO TREE:\ncalc.py\ntest_calc.py\nsrc/a.rs";
    assert_eq!(
        reads("Fix calc.py so that `test_calc.py` passes, calc.py!", tree),
        [json!({ "path": "calc.py" }), json!({ "path": "test_calc.py" })]
    );
    assert!(reads("Write squares.py", tree).is_empty(), "the file does not exist");
    assert!(reads("Set it to 2.0.0, see https://a.rs/b.html or e.g. this", tree).is_empty());
    assert_eq!(reads("Fix a.rs", tree), [json!({ "path": "src/a.rs" })], "the full path");
    assert!(
        request([user("calc.py")]).first_reads(tree, &[]).is_empty(),
        "there is no tool for it"
    );
}

#[test]
fn a_named_test_is_run_after_a_change() {
    let trial = |text: &str| request([user(text)]).trial();
    assert_eq!(
        trial("Fix calc.py so that test_calc.py passes."),
        Some("python3 test_calc.py".into())
    );
    assert_eq!(trial("Running main.py fails. Fix it."), Some("python3 main.py".into()));
    assert_eq!(trial("Add subtract to calc.py."), None);
    assert_eq!(trial("Run the thing in notes.txt"), None);
    let first = |text: &str| request([user(text)]).first_trial("calc.py test_calc.py main.py");
    assert_eq!(first("Running main.py fails. Fix it."), Some("python3 main.py".into()));
    assert_eq!(first("Fix calc.py so that test_calc.py passes."), None);
    let path = json!({ "path": "a.py", "content": "x" });
    let written = called("c1", "write_file", path, "created", true);
    let tried = called("c2", "shell", json!({ "command": "python3 a.py" }), "", false);
    let untried = request([user("Write a.py and run it")].into_iter().chain(written.clone()));
    assert!(untried.untried);
    let tried = request([user("Write a.py and run it")].into_iter().chain(written).chain(tried));
    assert!(!tried.untried, "also if it failed");
}

#[test]
fn a_change_that_does_not_work_is_undone() {
    let edit = json!({ "path": "a.py", "old": "1", "new": "2" });
    let read = called("c1", "read_file", json!({ "path": "a.py" }), "x = 1\n", true);
    let edited = called("c2", "edit_file", edit, "changed", true);
    let tried = called("c3", "shell", json!({ "command": "python3 test_a.py" }), "", false);
    let asked = [user("Fix a.py so that test_a.py passes")];
    let broken = asked.into_iter().chain(read).chain(edited).chain(tried);
    let undo = request(broken.clone()).undo();
    assert_eq!(undo, Some(json!({ "path": "a.py", "content": "x = 1\n" })));
    let undone = called("c4", "write_file", undo.unwrap(), "written", true);
    let anew = request(broken.chain(undone));
    assert_eq!((anew.undone, anew.changed, anew.broken, anew.undo()), (1, false, false, None));
}

#[test]
fn a_file_with_stated_content_is_read_even_if_it_is_not_listed() {
    let tools = [tool("read_file", &["path"])];
    let reads = |text: &str| request([user(text)]).first_reads("REPO TREE:\na.py", &tools);
    assert_eq!(reads("Delete f() in gone.py."), [json!({ "path": "gone.py" })]);
    assert!(reads("Write gone.py").is_empty());
}
