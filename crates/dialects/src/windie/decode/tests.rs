//! Every message, every limit, and the error for every invalid message.

use serde_json::{Value, json};

use super::*;

fn message(kind: &str, payload: &Value) -> Value {
    json!({ "id": "m-1", "type": kind, "payload": payload })
}

fn asks(kind: &str, payload: &Value) -> Asks {
    decode(&message(kind, payload).to_string()).unwrap().asks
}

/// What a message is answered with.
fn said(frame: &str) -> String {
    let answer = decode(frame).unwrap_err();
    assert_eq!(answer.kind, "error");
    answer.payload["message"].as_str().unwrap().to_owned()
}

/// What is wrong with the shape of a message.
#[track_caller]
fn check(message: &Value, wrong: &str) {
    assert_eq!(said(&message.to_string()), format!("Invalid message format: {wrong}"));
}

#[track_caller]
fn check_payload(kind: &str, payload: &Value, wrong: &str) {
    check(&message(kind, payload), wrong);
}

/// Checks lines of a type, a payload and what is wrong with it. `@` is short for `payload.`.
#[track_caller]
fn check_all(lines: &str) {
    for line in lines.trim().lines() {
        let (message, wrong) = line.trim().split_once(" => ").unwrap();
        let (kind, payload) = message.split_once(' ').unwrap();
        check_payload(
            kind,
            &serde_json::from_str(payload).unwrap(),
            &wrong.replace('@', "payload."),
        );
    }
}

#[track_caller]
fn hung_up(handshake: &Value, reason: &str) {
    assert_eq!(super::handshake(&handshake.to_string()).unwrap_err(), reason);
}

#[test]
fn a_client_says_who_it_is() {
    let frame = json!({ "type": "handshake", "user_id": " user-123 " }).to_string();
    let expected = Handshake { user: "user-123".into(), definition: None };
    assert_eq!(handshake(&frame), Ok(expected));
    let definition = json!({ "version": 1, "id": "agent" });
    let frame = json!({ "type": "handshake", "user_id": "u", "agent_definition": definition });
    let read = handshake(&frame.to_string()).unwrap();
    assert_eq!(read.definition.unwrap().id.as_deref(), Some("agent"));
}

#[test]
fn whoever_says_something_else_is_hung_up_on() {
    assert_eq!(handshake("{"), Err("Malformed JSON".into()));
    assert_eq!(handshake("[]"), Err("the handshake is not an object".into()));
    for line in r#"
        {"user_id":"u"} => type: Field required
        {"type":"query","user_id":"u"} => type: Input should be 'handshake'
        {"type":"handshake"} => user_id: Field required
        {"type":"handshake","user_id":""} => user_id: String should have at least 1 character
        {"type":"handshake","user_id":"  "} => user_id: String should have at least 1 character
        {"type":"handshake","user_id":"default_user"} => user_id: default_user is nobody
        {"type":"handshake","user_id":"u","agent_definition":{"version":2}} => agent_definition.version: Input should be 1
        "#.trim().lines() {
        let (frame, reason) = line.trim().split_once(" => ").unwrap();
        hung_up(&serde_json::from_str(frame).unwrap(), &format!("handshake.{reason}"));
    }
    for removed in [
        "operating_system",
        "available_tools",
        "available_coordinate_methods",
        "requested_agent_policy",
    ] {
        let frame = json!({ "type": "handshake", "user_id": "u", removed: "x" });
        hung_up(&frame, &format!("handshake.{removed}: Extra inputs are not permitted"));
    }
    let runtime = json!({ "runtime": { "operating_system": "Linux" } });
    let mut frame = json!({
        "type": "handshake", "user_id": "u", "agent_definition": runtime, "operating_system": "x",
    });
    hung_up(&frame, "handshake.operating_system: Extra inputs are not permitted");
    // The original Python client says it twice.
    frame["operating_system"] = "Linux".into();
    assert_eq!(handshake(&frame.to_string()).unwrap().user, "u");
}

#[test]
fn frames_that_are_no_messages() {
    assert_eq!(said("{"), "Malformed JSON");
    assert_eq!(said(""), "Malformed JSON");
    let large = " ".repeat(10 * 1024 * 1024 + 1);
    assert_eq!(said(&large), "Message too large: 10485761 bytes (max: 10485760 bytes)");
    assert_eq!(said(&large[1..]), "Malformed JSON");
    for (frame, kind) in [
        ("[]", "list"),
        ("\"x\"", "str"),
        ("1", "int"),
        ("1.5", "float"),
        ("true", "bool"),
        ("null", "NoneType"),
    ] {
        let wrong = format!("Invalid message format: root must be an object, got {kind}");
        assert_eq!(said(frame), wrong);
    }
    assert_eq!(decode("{").unwrap_err().id, None);
}

#[test]
fn envelopes_have_an_id_a_type_and_nothing_unknown() {
    check(&json!({ "type": "list-models" }), "id: Field required");
    check(&json!({ "id": "1" }), "type: Field required");
    check(&json!({}), "id: Field required; type: Field required");
    check(
        &json!({ "id": "1", "type": "list-models", "extra": 1, "more": 2 }),
        "extra: Extra inputs are not permitted; more: Extra inputs are not permitted",
    );
    let id = |id: &str| json!({ "id": id, "type": "list-models", "payload": {} });
    check(&id(""), "id: String should have at least 1 character");
    check(&id(&"a".repeat(129)), "id: String should have at most 128 characters");
    check(&id("a b"), "id: String should match pattern '^[a-zA-Z0-9_-]+$'");
    for good in ["turn_3-A", &"a".repeat(128)] {
        assert_eq!(decode(&id(good).to_string()).unwrap().id, good);
    }
    check(&json!({ "id": 7, "type": "list-models" }), "id: Input should be a valid string");
    check_payload("list-models", &json!([]), "payload: Input should be a valid dictionary");
    check(
        &json!({ "id": "1", "type": "dance" }),
        "type: Input should be 'query', 'stop-query', 'rehydrate-conversation', 'load-settings', \
         'update-settings', 'list-models', 'tool-result', 'tool-bundle-result', \
         'wakeword-detected' or 'compact-history'",
    );
}

#[test]
fn everything_that_an_envelope_may_have_is_taken() {
    let mut frame = message("list-models", &json!({}));
    for name in ["user_id", "session_id", "conversation_ref", "turn_ref", "event_id"] {
        frame[name] = json!("x");
    }
    frame["sequence"] = json!(3);
    frame["timestamp"] = json!({ "whatever": true });
    assert_eq!(decode(&frame.to_string()).unwrap().asks, Asks::ListModels);
    frame["turn_ref"] = json!(null);
    frame["payload"] = json!(null);
    assert_eq!(decode(&frame.to_string()).unwrap().asks, Asks::ListModels);
    frame["sequence"] = json!("3");
    check(&frame, "sequence: Input should be a valid integer");
}

fn query(payload: &Value) -> Query {
    match asks("query", payload) {
        Asks::Query(query) => *query,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_query_of_the_stock_client() {
    let read = query(&json!({
        "text": "hi", "conversation_ref": "c1", "revision_id": "rev_1",
        "content": "<user_query>\nhi\n</user_query>", "agent_definition": { "version": 1, "id": "a" },
    }));
    assert_eq!((read.text.as_str(), read.conversation.as_str()), ("hi", "c1"));
    assert_eq!(read.content.as_deref(), Some("<user_query>\nhi\n</user_query>"));
    assert_eq!(read.definition.unwrap().id.as_deref(), Some("a"));
}

#[test]
fn a_query_with_everything() {
    let layer = json!({ "id": "l", "type": "t", "content": "c" });
    let read = query(&json!({
        "text": "go", "conversation_ref": " c ", "screenshot_ref": "one.jpg",
        "screenshot_refs": ["a.jpg", "b.png", "a.jpg"], "capture_meta": { "frame_id": "f" },
        "system_state_internal": { "screen_resolution": "1920x1080" }, "workspace_path": "/w",
        "repo_instruction_messages": [{ "role": "user", "content": "rule" }],
        "client_prompt_layers": [layer],
    }));
    assert_eq!(read.conversation, "c");
    assert_eq!(read.screenshots, ["a.jpg", "b.png"]);
    assert_eq!(read.workspace.as_deref(), Some("/w"));
    assert_eq!(read.layers[0].content, "c");
    assert_eq!((&*read.text, &read.rules[..]), ("go", &["rule".to_owned()][..]));
    let single =
        query(&json!({ "text": "x", "conversation_ref": "c", "screenshot_ref": "one.jpg" }));
    assert_eq!(single.screenshots, ["one.jpg"]);
}

#[test]
fn the_text_of_a_query_is_cleaned_and_cut() {
    let text = |text: &str| query(&json!({ "text": text, "conversation_ref": "c" })).text;
    assert_eq!(text("  a\0b \n"), "ab");
    assert_eq!(text(&"é".repeat(50_000)), "é".repeat(50_000));
    assert_eq!(text(&"é".repeat(50_001)).chars().count(), 50_000);
}

#[test]
fn an_empty_query_is_told_about_under_its_own_name() {
    for text in ["", " \n", "\0"] {
        let frame = message("query", &json!({ "text": text, "conversation_ref": "c" }));
        let answer = decode(&frame.to_string()).unwrap_err();
        assert_eq!(answer.payload["message"], "Invalid query: Query text cannot be empty");
        assert_eq!(answer.id.as_deref(), Some("m-1"));
        assert_eq!(answer.context.conversation_ref.as_deref(), Some("c"));
        assert_eq!(answer.context.turn_ref.as_deref(), Some("m-1"));
    }
}

#[test]
fn a_query_has_a_shape() {
    check_all(
        r#"
        query {} => @text: Field required; @conversation_ref: Field required
        query {"text":1,"conversation_ref":"c"} => @text: Input should be a valid string
        query {"text":"x","conversation_ref":" "} => @conversation_ref: String should have at least 1 character
        query {"text":"x","conversation_ref":"c","screenshot_refs":"a"} => @screenshot_refs: Input should be a valid list
        query {"text":"x","conversation_ref":"c","agent_definition":{"x":1}} => @agent_definition.x: Extra inputs are not permitted
        query {"text":"x","conversation_ref":"c","client_prompt_layers":[{"id":"a","type":"b"}]} => @client_prompt_layers.0.content: Field required
        "#,
    );
    let with =
        |name: &str, value: Value| json!({ "text": "x", "conversation_ref": "c", name: value });
    let long = "payload.workspace_path: String should have at most 4096 characters";
    check_payload("query", &with("workspace_path", json!("x".repeat(4097))), long);
    let rule = |role: &str, length: usize| {
        with("repo_instruction_messages", json!([{ "role": role, "content": "x".repeat(length) }]))
    };
    assert_eq!(query(&rule("user", 200_000)).rules.len(), 1);
    let place = "payload.repo_instruction_messages.0";
    let wrong = format!(
        "{place}.role: Input should be 'user'; {place}.content: String should have at most 200000 characters"
    );
    check_payload("query", &rule("system", 200_001), &wrong);
}

#[test]
fn context_in_sections_is_worded_for_the_model() {
    let context =
        json!({ "episodic_memory": null, "semantic_memory": "likes tea", "bad name": "x" });
    let read = query(&json!({ "text": " go ", "conversation_ref": "c", "query_context": context }));
    let expected = "<episodic_memory>\nNone\n</episodic_memory>\n\n\
        <semantic_memory>\nlikes tea\n</semantic_memory>\n\n<user_query>\ngo\n</user_query>";
    assert_eq!(read.content.as_deref(), Some(expected));
}

#[test]
fn something_can_be_stopped() {
    let stop = |payload: Value| asks("stop-query", &payload);
    let nothing = Asks::Stop { conversation: None, turn: None };
    assert_eq!(stop(json!({})), nothing);
    assert_eq!(stop(json!({ "conversation_ref": null, "turn_ref": null })), nothing);
    let both = Asks::Stop { conversation: Some("c".into()), turn: Some("t".into()) };
    assert_eq!(stop(json!({ "conversation_ref": "c", "turn_ref": "t" })), both);
    check_all(r#"stop-query {"turn_ref":1} => @turn_ref: Input should be a valid string"#);
}

#[test]
fn a_conversation_comes_back() {
    let asked = asks(
        "rehydrate-conversation",
        &json!({
            "conversation_ref": "c", "rehydrate_mode": "replace", "workspace_path": "/w",
            "repo_instruction_messages": [], "model_history": [1],
            "messages": [
                { "role": "user", "content": "hi", "message_type": "user_query", "screenshot_ref": "a.jpg",
                  "timestamp": "2026-02-02T20:00:00Z", "transparency": {} },
                { "role": "assistant", "content": [{ "type": "text", "text": "a" }, { "text": "b" }], "tool_calls": [] },
                { "role": "tool", "content": { "exit": 0 }, "tool_name": "wait", "correlation_id": "x" },
            ],
        }),
    );
    let Asks::Rehydrate(read) = asked else { panic!() };
    assert_eq!((read.conversation.as_str(), read.workspace.as_deref()), ("c", Some("/w")));
    assert_eq!(read.entries[0].screenshots, ["a.jpg"]);
    let texts: Vec<String> = read
        .entries
        .iter()
        .map(|entry| quintet_kernel::message::text_of(&entry.recalled().parts))
        .collect();
    assert_eq!(texts, ["hi", "a\nb", "Result of wait:\n{\"exit\":0}"]);
}

#[test]
fn a_conversation_that_comes_back_has_a_shape() {
    check_all(
        r#"
        rehydrate-conversation {"conversation_ref":"c","rehydrate_mode":"append","messages":[]} => @rehydrate_mode: Input should be 'replace'
        rehydrate-conversation {"conversation_ref":"c","messages":[{"role":"system"}]} => @messages.0.role: Input should be 'user', 'assistant' or 'tool'
        rehydrate-conversation {} => @conversation_ref: Field required; @messages: Field required
        "#,
    );
}

#[test]
fn settings_are_asked_for_and_changed() {
    assert_eq!(asks("load-settings", &json!({ "client_version": "1.2" })), Asks::LoadSettings);
    let long = json!({ "client_version": "x".repeat(129) });
    let wrong = "payload.client_version: String should have at most 128 characters";
    check_payload("load-settings", &long, wrong);
    check_all(
        r#"
        load-settings {"client_version":""} => @client_version: String should have at least 1 character
        update-settings {"x":1} => @x: Extra inputs are not permitted
        "#,
    );
    let frame = message("update-settings", &json!({ "model_mode": "cloud" })).to_string();
    let expected =
        "Invalid settings: Invalid settings patch: model_mode: Input should be 'local' or 'online'";
    assert_eq!(said(&frame), expected);
    assert_eq!(decode(&frame).unwrap_err().id.as_deref(), Some("m-1"));
    let Asks::UpdateSettings(patch) = asks("update-settings", &json!({ "model_mode": "local" }))
    else {
        panic!()
    };
    assert_eq!(patch.updated_keys, ["model_mode"]);
}

#[test]
fn the_small_messages() {
    assert_eq!(asks("list-models", &json!({})), Asks::ListModels);
    assert_eq!(asks("wakeword-detected", &json!({})), Asks::Wakeword);
    let compact = Asks::Compact { force: true, conversation: None };
    assert_eq!(asks("compact-history", &json!({})), compact);
    let gently = Asks::Compact { force: false, conversation: Some("c".into()) };
    assert_eq!(
        asks("compact-history", &json!({ "force": false, "conversation_ref": "c" })),
        gently
    );
    check_all(r#"compact-history {"force":1} => @force: Input should be a valid boolean"#);
}

#[test]
fn results_have_a_shape() {
    check_all(
        r#"
        tool-result {} => @request_id: Field required; @success: Field required
        tool-result {"request_id":" ","success":true,"data":{}} => @request_id: String should have at least 1 character; @data.output: Field required
        tool-result {"request_id":"r","success":true,"data":{"output":null}} => @data.output: Field required
        tool-bundle-result {} => @bundle_id: Field required; @status: Field required; @step_results: Field required
        tool-bundle-result {"bundle_id":"b","status":"ok","step_results":[1]} => @status: Input should be 'success', 'partial_failure' or 'failure'; @step_results.0: Input should be a valid dictionary
        "#,
    );
}

#[test]
fn no_frame_panics() {
    let values =
        [json!(null), json!(1), json!("x"), json!([]), json!([{}]), json!({}), json!({ "a": [1] })];
    let names = [
        "text",
        "conversation_ref",
        "messages",
        "data",
        "step_results",
        "tools",
        "provider_api_keys",
        "agent_definition",
        "query_context",
        "screenshot_refs",
        "request_id",
        "status",
        "success",
    ];
    for (kind, _) in TYPES {
        for value in &values {
            let all: serde_json::Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), value.clone())).collect();
            let _ = decode(&message(kind, &all.into()).to_string());
            let _ = decode(&message(kind, value).to_string());
        }
    }
}
