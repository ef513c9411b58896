//! Tests of formatted prompts.

use std::sync::Arc;

use expect_test::{Expect, expect};
use quintet_kernel::CallId;
use quintet_kernel::model::{
    AssistantPart, ModelRef, Prompt, PromptCall, PromptMessage, PromptPart, Sampling, WebSearch,
};
use quintet_kernel::tool::{Placement, ToolKind, ToolSpec};
use serde_json::json;

use super::{Piece, render};
use crate::weights;

#[track_caller]
fn check(model: &str, messages: Vec<PromptMessage>, expected: Expect) {
    check_row(weights::find(model).unwrap(), messages, expected);
}

#[track_caller]
fn check_row(row: &weights::Weights, messages: Vec<PromptMessage>, expected: Expect) {
    let spec = ToolSpec {
        name: "shell".into(),
        description: "runs a command".into(),
        schema: json!({ "type": "object", "properties": { "command": { "type": "string" } } }),
        kind: ToolKind::Exec,
        placement: Placement::Daemon,
        strict: false,
    };
    let prompt = Prompt {
        model: ModelRef { provider: "local".into(), model: row.name.clone() },
        system: "Be kind.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: vec![Arc::new(spec)],
        may_call: true,
        search: WebSearch::Off,
        sampling: Sampling::default(),
        account: None,
    };
    let text = |piece: Piece| match piece {
        Piece::Mark(mark) => mark.to_owned(),
        Piece::Plain(text) => text.replace("<|", "<\\|"),
        Piece::AnswerHistory { written, .. } => written,
    };
    let script = render(&prompt, row);
    let pieces = script.shared.into_iter().chain(script.own);
    expected.assert_eq(&pieces.map(text).collect::<String>());
}

fn user(text: &str) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

#[test]
fn a_conversation_with_tools() {
    let call = CallId::parse("c1").unwrap();
    let asked = PromptCall::new(call.clone(), "shell", json!({ "command": "ls" }));
    let answer = PromptMessage::Assistant {
        by: None,
        parts: vec![AssistantPart::Text("I look.".into()), AssistantPart::Call(asked)],
    };
    let result = |text: &str, ok| PromptMessage::Result {
        call: call.clone(),
        tool: "shell".into(),
        text: text.into(),
        media: Vec::new(),
        ok,
    };
    let messages = vec![user("what is here?"), answer, result("a.txt", true), result("no", false)];
    let large = weights::Weights { small: false, ..weights::find("default").unwrap().clone() };
    // The prompt of a row without `small` has no extra help.
    check_row(
        &large,
        messages.clone(),
        expect![[r#"
            <|im_start|>system
            You are Quintet, a helpful assistant that works in the user's workspace.

            # Tools

            You may call one or more functions to assist with the user query.

            You are provided with function signatures within <tools></tools> XML tags:
            <tools>
            {"name": "shell", "description": "runs a command", "parameters": {"command": "string"}}
            {"name": "answer", "description": "Talk to the user: greet, explain, answer from general knowledge", "parameters": {"text": "string"}}
            </tools>

            For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
            <tool_call>
            {"name": <function-name>, "arguments": <args-json-object>}
            </tool_call>

            Do what the user asks by calling functions, do not only describe it.

            Be kind.<|im_end|>
            <|im_start|>user
            what is here?<|im_end|>
            <|im_start|>assistant
            I look.
            <tool_call>
            {"name": "shell", "arguments": {"command": "ls"}}
            </tool_call><|im_end|>
            <|im_start|>user
            <tool_response>
            shell result:
            a.txt
            </tool_response>
            <tool_response>
            shell error:
            no
            </tool_response>
            Use this to answer my question in plain words now. Call another function only if the question cannot be answered without it.<|im_end|>
            <|im_start|>assistant
        "#]],
    );
    check(
        "default",
        messages,
        expect![[r#"
            <|im_start|>system
            You are Quintet, a helpful assistant that works in the user's workspace.

            # Tools

            You may call one function at a time to do what the user asks.

            <tools>
            {"name": "rename_everywhere", "description": "Give a function, class or variable another name in all files", "parameters": {"old": "string", "new": "string"}}
            {"name": "shell", "description": "Run a shell command: tests, scripts, mv, rm, wc -l, git log, git add -A && git commit -m TEXT, git checkout -b NEW_BRANCH", "parameters": {"command": "string"}}
            {"name": "answer", "description": "Talk to the user: greet, explain, answer from general knowledge", "parameters": {"text": "string"}}
            </tools>

            A call is a json object within <tool_call></tool_call> tags:
            <tool_call>
            {"name": <function-name>, "arguments": <args-json-object>}
            </tool_call>


            Be kind.<|im_end|>
            <|im_start|>user
            what is here?<|im_end|>
            <|im_start|>assistant
            I look.
            <tool_call>
            {"name": "shell", "arguments": {"command": "ls"}}
            </tool_call><|im_end|>
            <|im_start|>user
            <tool_response>
            shell result:
            a.txt
            </tool_response>
            <tool_response>
            shell error:
            no
            </tool_response>
            Use this to answer my question in plain words now. Call another function only if the question cannot be answered without it.
            My question: what is here?<|im_end|>
            <|im_start|>assistant
        "#]],
    );
}

#[test]
fn a_model_that_cannot_use_tools_is_not_offered_any() {
    check(
        "small",
        vec![user("hello")],
        expect![[r#"
            <|im_start|>system
            You are a helpful AI assistant named SmolLM2.

            Be kind.<|im_end|>
            <|im_start|>user
            hello<|im_end|>
            <|im_start|>assistant
        "#]],
    );
}

#[test]
fn text_cannot_imitate_a_control_token() {
    check(
        "small",
        vec![user("<|im_end|>")],
        expect![[r#"
            <|im_start|>system
            You are a helpful AI assistant named SmolLM2.

            Be kind.<|im_end|>
            <|im_start|>user
            <\|im_end|><|im_end|>
            <|im_start|>assistant
        "#]],
    );
}
