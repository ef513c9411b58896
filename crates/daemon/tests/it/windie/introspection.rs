//! What the daemon would do, and that it is what it does.

use serde_json::{Value, json};

use super::{AUTH, Guest, detail};
use crate::computer::{Computer, first};
use crate::daemon::World;

fn names(tools: &Value) -> Vec<&str> {
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn agent() -> Value {
    json!({
        "version": 1,
        "system_prompt": { "mode": "replace", "content": "You take notes." },
        "skills": [{ "id": "s", "type": "skill", "content": "Write clearly." }],
        "tools": {
            "mode": "explicit",
            "available_tools": ["read_file", "mouse_control"],
            "client_manifest": { "version": 1, "tools": [{
                "name": "save_note",
                "description": "Save",
                "execution_target": "local_runtime",
                "schema": { "type": "object", "properties": {} },
            }] },
        },
    })
}

#[tokio::test]
async fn a_preview_is_exactly_what_the_model_is_sent() {
    let world = World::start("").await;
    std::fs::write(world.workspace().join("AGENTS.md"), "Be kind to the cat.").unwrap();
    let guest = Guest::stranger(&world);
    let script = json!([{ "text": "done" }]);
    let text = format!("go {{{{script: {script}}}}}");
    let content = format!(
        "<system_context><active_window>Terminal</active_window></system_context>\n\
         <user_query>{text}</user_query>"
    );
    let asked = json!({
        "user_id": "u",
        "user_query_raw": text,
        "conversation_ref": "c1",
        "workspace_path": world.workspace(),
        "agent_definition": agent(),
        "messages": [{ "role": "user", "content": content }],
    });
    let (status, preview) = guest.post("/api/sdk/prompt-preview", asked.clone()).await;
    assert_eq!(status, 200, "{preview}");
    assert!(!world.home.path().join("data/windie").exists(), "a preview makes nothing");
    let (status, plan) = guest.post("/api/sdk/query-plan", asked).await;
    assert_eq!(status, 200, "{plan}");
    assert_eq!(world.model.calls().len(), 0, "nobody was asked");

    let mut computer = Computer::connect(world.windie(), "u", agent()).await;
    let mut payload = plan["query_message"]["payload"].clone();
    payload["content"] = content.clone().into();
    computer.send(plan["query_message"]["type"].as_str().unwrap(), payload).await;
    let told = computer.until("streaming-complete").await;
    let sent = &world.model.calls()[0];
    assert_eq!(preview["system_prompt"], sent["messages"][0]["content"]);
    let system = preview["system_prompt"].as_str().unwrap();
    for part in ["You take notes.", "Write clearly.", "Be kind to the cat."] {
        assert!(system.contains(part), "{system}");
    }
    assert_eq!(preview["prompt_messages"], json!([{ "role": "user", "content": content }]));
    assert_eq!(preview["prompt_messages"][0]["content"], sent["messages"][1]["content"]);
    let offered = sent["tools"].as_array().unwrap().iter();
    let offered: Vec<Value> = offered.map(|tool| tool["function"].clone()).collect();
    let shown = preview["provider_tool_schemas"].as_array().unwrap().iter();
    let shown: Vec<Value> = shown.cloned().map(without_type).collect();
    assert_eq!(shown, offered);
    assert!(preview["prompt_token_count"].as_u64().unwrap() > 100, "{preview}");
    assert_eq!(preview["token_count_error"], Value::Null);

    for event in plan["transparency_events"].as_array().unwrap() {
        let happened = first(&told, event["type"].as_str().unwrap());
        assert_eq!(event["payload"], happened["payload"]);
    }
    let kinds = plan["transparency_events"].as_array().unwrap().iter().map(|event| &event["type"]);
    let kinds: Vec<&Value> = kinds.collect();
    assert_eq!(kinds, ["system-prompt", "user-message-full", "tool-schemas"]);
    let full = &preview["user_message_full"];
    assert_eq!(full, &plan["transparency_events"][1]["payload"]);
    assert_eq!(full["metadata"]["original_query"], text);
    assert_eq!(full["metadata"]["active_window"], "Terminal");
    assert_eq!(full["metadata"]["context_type"], "initial");
}

fn without_type(mut tool: Value) -> Value {
    assert_eq!(tool.as_object_mut().unwrap().remove("type"), Some(json!("function")));
    tool
}

#[tokio::test]
async fn a_preview_takes_what_was_said_before() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let asked = json!({
        "include_tools": false,
        "messages": [
            { "role": "user", "content": "one" },
            { "role": "assistant", "content": "two" },
            { "role": "user", "content": "three" },
        ],
    });
    let (_, preview) = guest.post("/api/sdk/prompt-preview", asked.clone()).await;
    assert_eq!(preview["prompt_messages"], asked["messages"]);
    assert_eq!(preview["user_message_full"], Value::Null);
    assert_eq!(preview["canonical_tool_schemas"], json!([]));
    assert_eq!(preview["provider_tool_schemas"], json!([]));
    let (status, preview) = guest.post("/api/sdk/query-plan", json!({})).await;
    assert_eq!((status, &preview["prompt_messages"]), (200, &json!([])), "{preview}");
    assert_eq!(preview["transparency_events"].as_array().unwrap().len(), 2);
    assert_eq!(preview["query_message"], json!({ "type": "query", "payload": { "text": "" } }));
    let asked = json!({ "user_query_raw": "open file", "workspace_path": "/nowhere/at/all" });
    let (_, preview) = guest.post("/api/sdk/query-plan", asked).await;
    let message = json!([{ "role": "user", "content": "open file" }]);
    assert_eq!(preview["prompt_messages"], message);
    assert_eq!(preview["query_message"]["payload"]["workspace_path"], "/nowhere/at/all");
    let system = preview["system_prompt"].as_str().unwrap();
    assert!(system.contains("/nowhere/at/all"), "{system}");
}

#[tokio::test]
async fn tools_are_shown_before_and_after_policy() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let (status, shown) = guest.get("/api/sdk/tool-schemas").await;
    assert_eq!(status, 200, "{shown}");
    let all = names(&shown["canonical_tool_schemas"]);
    assert!(all.contains(&"browser") && all.contains(&"mouse_control"), "{all:?}");
    let offered = names(&shown["provider_tool_schemas"]);
    assert!(offered.contains(&"mouse_control") && !offered.contains(&"browser"), "{offered:?}");
    // Where the daemon's own tools are offered, they are among all there are.
    let here = json!({ "workspace_path": world.workspace() });
    let (_, preview) = guest.post("/api/sdk/prompt-preview", here).await;
    let all = names(&preview["canonical_tool_schemas"]);
    let left = names(&preview["provider_tool_schemas"]);
    assert!(left.contains(&"shell") && left.iter().all(|name| all.contains(name)), "{all:?}");
    let (_, chat) = guest.get("/api/sdk/tool-schemas?interaction_mode=chat").await;
    assert_eq!(chat["config"]["interaction_mode"], "chat");
    let (_, tool) = guest.get("/api/sdk/tool-capabilities/mouse_control").await;
    assert_eq!(tool["tool_name"], "mouse_control");
    assert_eq!(tool["capability"]["argument_resolution"], "backend_grounding");
    assert_eq!(tool["canonical_tool_schema"]["name"], "mouse_control");
    let same = shown["provider_tool_schemas"].as_array().unwrap().iter();
    let same = same.clone().find(|shown| shown["name"] == "mouse_control").unwrap();
    assert_eq!(&tool["provider_tool_schema"], same);
    let (_, hidden) = guest.get("/api/sdk/tool-capabilities/browser").await;
    assert_eq!(hidden["provider_tool_schema"], Value::Null);
    assert_eq!(hidden["canonical_tool_schema"]["name"], "browser");
    let unknown = guest.get("/api/sdk/tool-capabilities/teleport").await;
    assert_eq!(unknown, (404, detail("Tool not found")));
    let (status, shown) = guest.get("/api/sdk/system-prompt").await;
    assert_eq!(status, 200);
    assert!(shown["system_prompt"].as_str().unwrap().len() > 100, "{shown}");
}

#[tokio::test]
async fn models_are_shown_with_what_is_in_force() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let (status, shown) = guest.get("/api/sdk/models").await;
    assert_eq!(status, 200, "{shown}");
    let config = json!({
        "model_mode": "online",
        "model_provider": "fake",
        "selected_model_id": "fake",
        "interaction_mode": "agent",
    });
    assert_eq!(shown["config"], config);
    assert!(shown["models"].is_array(), "{shown}");
    let query = "/api/sdk/models?model_id=m%40%40v&model_provider=p&interaction_mode=chat";
    let (_, shown) = guest.get(query).await;
    let config = json!({
        "model_mode": "online",
        "model_provider": "p",
        "selected_model_id": "m@@v",
        "interaction_mode": "chat",
    });
    assert_eq!(shown["config"], config);
    let (status, said) = guest.get("/api/sdk/models?interaction_mode=magic").await;
    let fault = json!([{
        "type": "literal_error",
        "loc": ["query", "interaction_mode"],
        "msg": "Input should be 'chat' or 'agent'",
    }]);
    assert_eq!((status, said), (422, json!({ "detail": fault })));
}

#[tokio::test]
async fn nobody_sees_what_somebody_else_set() {
    let world = World::start(AUTH).await;
    let (one, two) = (Guest::register(&world).await, Guest::register(&world).await);
    let handshake = json!({ "type": "handshake", "user_id": "anybody" });
    let mut computer = Computer::reach(world.windie(), one.token.as_deref(), &handshake).await;
    computer.send("update-settings", json!({ "interaction_mode": "chat" })).await;
    computer.until("settings-updated").await;
    let mode = async |guest: &Guest, query: &str| {
        let (status, shown) = guest.get(&format!("/api/sdk/models{query}")).await;
        (status, shown["config"]["interaction_mode"].clone())
    };
    assert_eq!(mode(&one, "").await, (200, json!("chat")));
    let mine = format!("?user_id={}", one.user);
    assert_eq!(mode(&one, &mine).await, (200, json!("chat")));
    assert_eq!(mode(&two, "").await, (200, json!("agent")));
    let refused = (403, detail("user_id does not match the authenticated install"));
    for path in ["models", "tool-schemas", "tool-capabilities/wait", "system-prompt"] {
        assert_eq!(two.get(&format!("/api/sdk/{path}{mine}")).await, refused, "{path}");
    }
    for path in ["prompt-preview", "query-plan"] {
        let body = json!({ "user_id": one.user, "user_query_raw": "x" });
        let path = format!("/api/sdk/{path}");
        assert_eq!(two.post(&path, body.clone()).await, refused, "{path}");
        assert_eq!(one.post(&path, body.clone()).await.0, 200, "{path}");
        let missing = (401, detail("Missing install bearer token"));
        assert_eq!(Guest::stranger(&world).post(&path, body).await, missing, "{path}");
    }
    let body = json!({ "user_query_raw": "x", "workspace_path": world.workspace() });
    std::fs::write(world.workspace().join("AGENTS.md"), "the password is swordfish").unwrap();
    let (_, shown) = one.post("/api/sdk/prompt-preview", body).await;
    assert!(!shown.to_string().contains("swordfish"), "files of this machine are not a guest's");
}

#[tokio::test]
async fn what_is_asked_of_previews_has_its_limits() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let check = async |body: Value, then: &str| {
        for path in ["/api/sdk/prompt-preview", "/api/sdk/query-plan"] {
            let (status, said) = guest.post(path, body.clone()).await;
            assert_eq!(status, 422, "{body} {said}");
            let fault = &said["detail"][0];
            let place: Vec<String> = fault["loc"].as_array().unwrap()[1..]
                .iter()
                .map(|part| part.as_str().map_or_else(|| part.to_string(), String::from))
                .collect();
            assert_eq!(format!("{}: {}", place.join("."), fault["msg"].as_str().unwrap()), then);
        }
    };
    let long = |name: &str, length: usize| json!({ name: "x".repeat(length) });
    let most =
        |name: &str, most: usize| format!("{name}: String should have at most {most} characters");
    for (name, limit) in [
        ("model_id", 256),
        ("model_provider", 128),
        ("workspace_path", 4096),
        ("user_query_raw", 32_768),
    ] {
        check(long(name, limit + 1), &most(name, limit)).await;
    }
    let mode = json!({ "interaction_mode": "magic" });
    check(mode, "interaction_mode: Input should be 'chat' or 'agent'").await;
    let role = json!({ "messages": [{ "role": "robot", "content": "x" }] });
    check(role, "messages.0.role: Input should be 'user', 'assistant', 'system' or 'tool'").await;
    let version = json!({ "agent_definition": { "version": 2 } });
    check(version, "agent_definition.version: Input should be 1").await;
    let extra = json!({ "agent_definition": { "magic": 2 } });
    check(extra, "agent_definition.magic: Extra inputs are not permitted").await;
}
