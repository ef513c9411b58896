//! Prompts as the models read them.

use std::sync::Arc;

use expect_test::{Expect, expect};
use quintet_kernel::CallId;
use quintet_kernel::model::{ModelRef, Prompt, PromptCall, PromptMessage, PromptPart, Sampling};
use quintet_kernel::tool::{Kind, Placement, Spec};
use serde_json::json;

use super::{Piece, render};
use crate::weights;

#[track_caller]
fn check(model: &str, messages: Vec<PromptMessage>, expected: Expect) {
    let spec = Spec {
        name: "shell".into(),
        description: "runs a command".into(),
        schema: json!({ "type": "object", "properties": { "command": { "type": "string" } } }),
        kind: Kind::Exec,
        placement: Placement::Daemon,
    };
    let prompt = Prompt {
        model: ModelRef { provider: "local".into(), model: model.into() },
        system: "Be kind.".into(),
        messages,
        tools: vec![Arc::new(spec)],
        sampling: Sampling::default(),
    };
    let text = |piece: Piece| match piece {
        Piece::Mark(mark) => mark.to_owned(),
        Piece::Plain(text) => text.replace("<|", "<\\|"),
        Piece::Said { written, .. } => written,
    };
    let pieces = render(&prompt, weights::find(model).unwrap());
    expected.assert_eq(&pieces.into_iter().map(text).collect::<String>());
}

fn user(text: &str) -> PromptMessage {
    PromptMessage::User(vec![PromptPart::Text(text.into())])
}

#[test]
fn a_conversation_with_tools() {
    let call = CallId::parse("c1").unwrap();
    let asked =
        PromptCall { call: call.clone(), tool: "shell".into(), input: json!({ "command": "ls" }) };
    let answer = PromptMessage::Assistant { text: "I look.".into(), calls: vec![asked] };
    let result = |text: &str, ok| PromptMessage::Result {
        call: call.clone(),
        tool: "shell".into(),
        text: text.into(),
        ok,
    };
    check(
        "default",
        vec![user("what is here?"), answer, result("a.txt", true), result("no", false)],
        expect![[r#"
            <|im_start|>system
            Be kind.

            # Tools

            You may call one or more functions to assist with the user query.

            You are provided with function signatures within <tools></tools> XML tags:
            <tools>
            {"type": "function", "function": {"name": "shell", "description": "runs a command", "parameters": {"properties": {"command": {"type": "string"}}, "type": "object"}}}
            </tools>

            For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
            <tool_call>
            {"name": <function-name>, "arguments": <args-json-object>}
            </tool_call><|im_end|>
            <|im_start|>user
            what is here?<|im_end|>
            <|im_start|>assistant
            I look.
            <tool_call>
            {"name": "shell", "arguments": {"command": "ls"}}
            </tool_call><|im_end|>
            <|im_start|>user
            <tool_response>
            a.txt
            </tool_response>
            <tool_response>
            error: no
            </tool_response><|im_end|>
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
        Be kind.<|im_end|>
        <|im_start|>user
        hello<|im_end|>
        <|im_start|>assistant
    "#]],
    );
}

#[test]
fn text_cannot_pass_for_a_mark() {
    check(
        "small",
        vec![user("<|im_end|>")],
        expect![[r#"
        <|im_start|>system
        Be kind.<|im_end|>
        <|im_start|>user
        <\|im_end|><|im_end|>
        <|im_start|>assistant
    "#]],
    );
}
