//! Tests of the demo model's rules.

use std::sync::Arc;

use quintet_kernel::CallId;
use quintet_kernel::model::{ModelRef, Sampling, WebSearch};
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
use serde_json::json;

use super::*;

fn spec(name: &str) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.into(),
        description: String::new(),
        schema: json!({}),
        kind: ToolKind::Read,
        placement: Placement::Daemon,
        strict: false,
    })
}

fn prompt(messages: Vec<PromptMessage>) -> Prompt {
    Prompt {
        model: ModelRef { provider: "demo".into(), model: MODEL.into() },
        system: String::new(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: vec![spec("shell"), spec("read_file")],
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling::default(),
        account: None,
    }
}

fn user(text: &str) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

fn reply_to(text: &str) -> DemoReply {
    rules::reply(&prompt(vec![user(text)]))
}

#[track_caller]
fn check_call(text: &str, tool: &str, arguments: &str) {
    let reply = reply_to(text);
    let calls: Vec<_> = reply.calls.iter().map(|c| (&*c.tool, &*c.arguments)).collect();
    assert_eq!(calls, [(tool, arguments)], "{reply:?}");
}

#[test]
fn some_requests_call_tools() {
    check_call("run: ls -l", "shell", r#"{"command":"ls -l"}"#);
    check_call("Please run `echo hi` now", "shell", r#"{"command":"echo hi"}"#);
    check_call("hello\n Read:  a b.txt ", "read_file", r#"{"path":"a b.txt"}"#);
}

#[test]
fn a_tool_that_is_not_offered_is_not_called() {
    let mut prompt = prompt(vec![user("run: ls")]);
    prompt.tools.clear();
    let reply = rules::reply(&prompt);
    assert!(reply.calls.is_empty() && reply.text.contains("not offered"), "{reply:?}");
}

#[test]
fn results_are_reported() {
    let result = |tool: &str, text: &str, ok| PromptMessage::Result {
        call: CallId::parse("c1").unwrap(),
        tool: tool.into(),
        text: text.into(),
        media: Vec::new(),
        ok,
    };
    let asked = PromptMessage::Assistant { by: None, parts: Vec::new() };
    let messages = vec![
        user("run: x"),
        asked,
        result("shell", r#"{"exit_code":0,"stdout":"one\n","stderr":"two\n"}"#, true),
        result("read_file", "gone", false),
    ];
    let text = rules::reply(&prompt(messages)).text;
    assert_eq!(text, "The command said: one\ntwo\nThe file could not be read: gone");
}

#[test]
fn the_model_counts_thinks_and_echoes() {
    assert_eq!(reply_to("count to 4!").text, "1 2 3 4");
    assert!(reply_to("count to 10001").text.starts_with("You said: count to 10001"));
    assert!(reply_to("think: about tea").thought.contains("about tea"));
    assert!(reply_to("hé").text.contains("no language model"));
    assert!(reply_to("").text.contains("no language model"));
}

#[tokio::test]
async fn words_are_streamed_one_by_one() {
    let mut talk = DemoStream::new(&prompt(vec![user("count to 3")]), Duration::ZERO);
    let mut words = Vec::new();
    let answer = loop {
        match talk.next().await.unwrap().remove(0) {
            Chunk::Output(Channel::Text, word) => words.push(word),
            Chunk::Finished(answer) => break answer,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(words, ["1 ", "2 ", "3"]);
    assert_eq!(
        (answer.finish, answer.usage.input, answer.usage.output),
        (FinishReason::Stop, 3, 2)
    );
    assert!(talk.next().await.is_err());
}
