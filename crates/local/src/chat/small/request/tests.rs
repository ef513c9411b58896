//! What is understood of a conversation.

use std::sync::Arc;

use quintet_kernel::CallId;
use quintet_kernel::model::{
    AssistantPart, ModelRef, Prompt, PromptCall, PromptMessage, PromptPart, Sampling, WebSearch,
};
use serde_json::{Value, json};

use super::{Request, wants_change};
use crate::chat::small::tests::tool;

fn user(text: &str) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

/// A call and its result.
fn called(id: &str, tool: &str, input: Value, text: &str, ok: bool) -> [PromptMessage; 2] {
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
fn a_change_is_told_from_a_question() {
    for text in ["Fix the bug in calc.py.", "It fails. Please fix it", "can you rename x to y?"] {
        assert!(wants_change(text), "{text}");
    }
    for text in [
        "What does fix() do?",
        "How would I add a test?",
        "Is there a bug?",
        "On which line is it set?",
        "hello",
        "",
    ] {
        assert!(!wants_change(text), "{text}");
    }
    assert!(!wants_change("Review the fix, but do not change anything"));
}

#[test]
fn files_are_known_as_they_were_seen_last() {
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
fn a_call_that_brings_nothing_new_is_a_repetition() {
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
    assert!(reads("Write squares.py", tree).is_empty(), "there is no such file");
    assert!(reads("Set it to 2.0.0, see https://a.rs/b.html or e.g. this", tree).is_empty());
    assert!(request([user("calc.py")]).first_reads(tree, &[]).is_empty(), "no tool for it");
}

#[test]
fn questions_about_the_workspace_need_a_look() {
    for text in
        ["Which function calls send_mail?", "What does main() print?", "Who wrote this project?"]
    {
        assert!(super::asks_workspace(text), "{text}");
    }
    for text in ["What is the capital of France?", "How are you?", "Thank you.", ""] {
        assert!(!super::asks_workspace(text), "{text}");
    }
}

#[test]
fn what_a_request_names_as_a_test_tries_a_change_out() {
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
