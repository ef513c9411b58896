//! The protocol of editors: a real `quintet acp` on a real daemon.

pub(crate) mod attach;
pub(crate) mod editor;
mod files;
mod permission;
mod pitfalls;
mod sessions;

use serde_json::{Value, json};

use crate::daemon::World;
use editor::Editor;

pub(crate) const WITH_APPROVALS: &str =
    "[approval]\nkinds = [\"write\", \"exec\"]\n[verify]\nauto = false\n";

/// A daemon whose model accepts no pictures.
async fn without_pictures() -> World {
    World::start("inputs = []\n[approval]\nkinds = []\n[verify]\nauto = false\n").await
}

pub(crate) fn select(request: &Value, kind: &str) -> Value {
    let options = request["params"]["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["kind"] == kind).unwrap();
    json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_is_answered_when_its_turn_ends() {
    let world = without_pictures().await;
    let mut editor = Editor::start(&world);
    let initialized = editor.initialize(json!({}));
    assert_eq!(initialized["protocolVersion"], 1);
    assert_eq!(initialized["agentCapabilities"]["loadSession"], true);
    assert_eq!(initialized["agentCapabilities"]["promptCapabilities"]["image"], false);
    assert_eq!(initialized["authMethods"], json!([]));
    let session = editor.new_session(&world);
    assert_eq!(editor.seen.len(), 2, "nothing is sent before the response: {:#?}", editor.seen);
    let id = editor.script(&session, json!([{ "thought": "hm", "deltas": ["Hel", "lo"] }]));
    assert_eq!(editor.answer(id), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(editor.text("agent_message_chunk"), "Hello");
    assert_eq!(editor.text("agent_thought_chunk"), "hm");
    assert!(editor.updates("user_message_chunk").is_empty(), "the editor shows its own message");
    assert_eq!(editor.updates("available_commands_update").len(), 1);
    let titled = editor.updates("session_info_update");
    assert!(titled[0]["title"].as_str().unwrap().starts_with("go {{script:"), "{titled:?}");
    let (rest, success) = editor.close();
    assert!(success && rest.is_empty(), "{rest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_prompt_gets_one_response() {
    let world = World::start("").await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let first = editor.script(&session, json!([{ "text": "half an ans", "hang": true }]));
    editor.until(|message| message["params"]["update"]["content"]["text"] == "half an ans");
    // The second prompt is queued, and is cancelled with the first.
    let second = editor.script(&session, json!([{ "text": "never" }]));
    editor.notify("session/cancel", json!({ "sessionId": session }));
    let cancelled = Ok(json!({ "stopReason": "cancelled" }));
    let (one, other) = (first.min(second), first.max(second));
    let mut answers = vec![];
    for _ in [one, other] {
        let answer = editor.until(|message| message["id"].is_u64());
        answers.push(answer["id"].as_u64().unwrap());
        assert_eq!(Ok::<_, Value>(answer["result"].clone()), cancelled);
    }
    answers.sort_unstable();
    assert_eq!(answers, [one, other]);
    let third = editor.script(&session, json!([{ "text": "and on" }]));
    assert_eq!(editor.answer(third), Ok(json!({ "stopReason": "end_turn" })));
    assert!(!editor.text("agent_message_chunk").contains("never"));
    let fourth = editor.script(&session, json!([{ "text": "x", "hang": true }]));
    editor.until(|message| message["params"]["update"]["content"]["text"] == "x");
    editor.notify("$/cancel_request", json!({ "requestId": fourth }));
    assert_eq!(editor.answer(fourth), cancelled);
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_run_one_after_the_other() {
    let world = World::start("").await;
    let mut editor = Editor::ready(&world, json!({}));
    let session = editor.new_session(&world);
    let first = editor.script(&session, json!([{ "deltas": ["a", "b"], "gap_ms": 50 }]));
    let second = editor.script(&session, json!([{ "text": "c" }]));
    assert_eq!(editor.answer(first), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(editor.answer(second), Ok(json!({ "stopReason": "end_turn" })));
    assert_eq!(editor.text("agent_message_chunk"), "abc");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_have_the_codes_of_the_protocol() {
    let world = without_pictures().await;
    let mut editor = Editor::start(&world);
    let code = |answer: Result<Value, Value>| answer.unwrap_err()["code"].as_i64().unwrap();
    assert_eq!(code(editor.call("session/new", json!({ "cwd": "/tmp" }))), -32600);
    assert_eq!(code(editor.call("initialize", json!({ "protocolVersion": "1" }))), -32602);
    assert_eq!(
        editor.call("initialize", json!({ "protocolVersion": 2 })).unwrap()["protocolVersion"],
        1
    );
    for method in ["session/fork", "_other/thing", "logout"] {
        assert_eq!(code(editor.call(method, json!({}))), -32601, "{method}");
    }
    assert_eq!(code(editor.call("authenticate", json!({ "methodId": "x" }))), -32601);
    let known = json!({ "sessionId": "sess_unknown", "cwd": world.workspace(), "mcpServers": [] });
    let prompt = json!({ "sessionId": "../x", "prompt": [{ "type": "text", "text": "x" }] });
    for (method, params) in [
        ("session/load", &known),
        ("session/resume", &known),
        ("session/close", &known),
        ("session/prompt", &prompt),
    ] {
        let error = editor.call(method, params.clone()).unwrap_err();
        assert_eq!(
            (&error["code"], &error["data"]["sessionId"]),
            (&json!(-32002), &params["sessionId"])
        );
    }
    assert_eq!(
        editor.call("session/delete", json!({ "sessionId": "sess_unknown" })),
        Ok(json!({}))
    );
    assert_eq!(code(editor.call("session/new", json!({ "cwd": "here" }))), -32602);
    assert_eq!(code(editor.call("session/new", json!({ "cwd": "/nowhere" }))), -32602);
    let session = editor.new_session(&world);
    for prompt in
        [json!([]), json!("x"), json!([{ "type": "video" }]), json!([{ "type": "image" }])]
    {
        let params = json!({ "sessionId": session, "prompt": prompt });
        assert_eq!(code(editor.call("session/prompt", params)), -32602);
    }
    // This model accepts no pictures.
    let picture = json!([{ "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" }]);
    assert_eq!(
        code(editor.call("session/prompt", json!({ "sessionId": session, "prompt": picture }))),
        -32602
    );
    editor.write(&json!([{ "jsonrpc": "2.0", "id": 1, "method": "initialize" }]));
    let refused = editor.until(|message| message["id"].is_null() && message.get("error").is_some());
    assert_eq!(refused["error"]["code"], -32600);
    let failing = editor.script(&session, json!([{ "status": 400, "message": "no such thing" }]));
    let error = editor.answer(failing).unwrap_err();
    assert_eq!(error["code"], -32603);
    assert!(error["message"].as_str().unwrap().contains("no such thing"), "{error}");
}
