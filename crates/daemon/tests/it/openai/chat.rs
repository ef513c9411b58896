//! Chat completions.

use reqwest::Method;
use serde_json::{Value, json};

use super::*;
use crate::daemon::{World, until};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn models_are_listed_directly_and_as_agents() {
    let world = World::start("").await;
    let client = world.openai();
    let (status, list) = client.get("/v1/models").await;
    assert_eq!((status, &list["object"]), (200, &json!("list")));
    let names: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    for name in [PROXY, AGENT, "sentence-transformers/all-MiniLM-L6-v2"] {
        assert!(names.contains(&name), "{names:?}");
        let (status, model) = client.get(&format!("/v1/models/{name}")).await;
        assert_eq!((status, &model["id"], &model["object"]), (200, &json!(name), &json!("model")));
    }
    let (status, escaped) = client.get("/v1/models/quintet%2Ffake%2Ffake").await;
    assert_eq!((status, &escaped["owned_by"]), (200, &json!("quintet")));
    let (status, unknown) = client.get("/v1/models/nobody/x").await;
    assert_eq!((status, &unknown["error"]["code"]), (404, &json!("model_not_found")));
}

#[tokio::test]
async fn strict_tools_names_and_details_of_pictures_reach_the_model() {
    let world = World::start("inputs = [\"image\"]\n[approval]\nkinds = []\n").await;
    let client = world.openai();
    let strict = with(weather(), json!({ "strict": true }));
    let picture = json!({ "url": "data:image/png;base64,AAEC", "detail": "low" });
    let messages = json!([
        { "role": "system", "name": "example", "content": "Hello." },
        { "role": "user", "name": "alice", "content": script(json!([{ "text": "Hi." }])) },
        { "role": "user", "name": "bob", "content": [{ "type": "image_url", "image_url": picture }] },
    ]);
    for model in [PROXY, AGENT] {
        let tools = json!([{ "type": "function", "function": strict }]);
        let body = json!({ "model": model, "messages": messages, "tools": tools });
        assert_eq!(post(&client, CHAT, &body).await.status(), 200);
        let sent = world.model.calls().pop().unwrap();
        let tools = sent["tools"].as_array().unwrap();
        let is_weather = |tool: &&Value| tool["function"]["name"] == "weather";
        assert_eq!(tools.iter().find(is_weather).unwrap()["function"]["strict"], true);
        let others = tools.iter().filter(|tool| !is_weather(tool));
        assert!(others.into_iter().all(|tool| tool["function"]["strict"].is_null()));
        let messages_text = sent["messages"].to_string();
        assert!(
            messages_text.contains("alice: ") && messages_text.contains("bob:"),
            "{messages_text}"
        );
        assert!(messages_text.contains("example: Hello."), "{messages_text}");
        if model == PROXY {
            assert_eq!(sent["messages"][2]["content"][1]["image_url"], picture);
        }
    }
}

#[tokio::test]
async fn a_proxied_model_gets_exactly_the_clients_messages_and_tools() {
    let world = World::start("").await;
    let client = world.openai();
    let call = json!({
        "id": "functions.weather:0",
        "type": "function",
        "function": { "name": "weather", "arguments": "{\"city\": \"Oslo\",  \"a\": 1}" },
    });
    let messages = json!([
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Weather?" },
        { "role": "assistant", "content": null, "tool_calls": [call] },
        { "role": "tool", "tool_call_id": "functions.weather:0", "content": "21" },
        { "role": "system", "content": "Now in French." },
        { "role": "user", "content": script(json!([{ "text": "Oui." }])) },
    ]);
    let body = json!({
        "model": PROXY,
        "messages": messages,
        "tools": [{ "type": "function", "function": weather() }],
        "tool_choice": { "type": "function", "function": { "name": "weather" } },
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop": ["X"],
        "response_format": { "type": "json_object" },
        "a_field_of_tomorrow": true,
    });
    let response = post(&client, CHAT, &body).await;
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("x-request-id"));
    let answer: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["model"], PROXY);
    assert_eq!(answer["choices"][0]["message"]["content"], "Oui.");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let sent = world.model.calls().pop().unwrap();
    assert_eq!(sent["messages"], messages);
    for field in
        ["tools", "tool_choice", "max_tokens", "temperature", "top_p", "stop", "response_format"]
    {
        assert_eq!(sent[field], body[field], "{field}");
    }
    let (_, sessions) = world.client().get("/v1/sessions").await;
    assert_eq!(sessions, json!([]), "a proxied model needs no session");
}

#[tokio::test]
async fn a_proxied_stream_has_chunks_usage_and_an_end() {
    let world = World::start("").await;
    let client = world.openai();
    let tool = json!({ "name": "weather", "args": { "city": "Oslo" }, "id": "call_9" });
    let steps =
        json!([{ "thought": "hm", "deltas": ["Hel", "lo"], "tools": [tool], "usage": [7, 3] }]);
    let body = with(
        chat_body(PROXY, steps),
        json!({
            "stream_options": { "include_usage": true },
            "tools": [{ "type": "function", "function": weather() }],
        }),
    );
    let text = streamed(&client, CHAT, body).await;
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let frames = frames(&text);
    assert_eq!(frames[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": "" }));
    assert_eq!(frames[1]["choices"][0]["delta"], json!({ "reasoning_content": "hm" }));
    assert_eq!(content(&frames), "Hello");
    let calls: Vec<&Value> = frames
        .iter()
        .map(|frame| &frame["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| call.is_object())
        .collect();
    assert_eq!(calls[0]["id"], "call_9");
    assert_eq!((&calls[0]["index"], &calls[0]["function"]["name"]), (&json!(0), &json!("weather")));
    assert!(calls[1..].iter().all(|call| call["id"].is_null()), "{calls:?}");
    let [.., last, usage] = &frames[..] else { panic!("{frames:?}") };
    assert_eq!(last["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &json!(10)));
    assert!(frames[..frames.len() - 1].iter().all(|frame| frame["usage"].is_null()));
}

#[tokio::test]
async fn an_agent_works_in_a_session_that_other_protocols_show() {
    let world = World::start(NO_APPROVALS).await;
    let client = world.openai();
    let tool = json!({ "name": "shell", "args": { "command": "echo hi > made.txt" } });
    let steps = json!([{ "text": "I will.", "tools": [tool], "usage": [5, 1] }, { "text": "Done.", "usage": [6, 2] }]);
    let body =
        with(chat_body(AGENT, steps), json!({ "metadata": { "workspace": world.workspace() } }));
    let (status, answer) = client.post(CHAT, body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "I will.\n\nDone.");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["usage"]["total_tokens"], 14);
    assert!(world.workspace().join("made.txt").exists());
    let (_, sessions) = world.client().get("/v1/sessions").await;
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    let session = sessions[0]["id"].as_str().unwrap();
    let kinds: Vec<Value> =
        world.client().history(session).await.iter().map(|it| it["type"].clone()).collect();
    assert!(kinds.contains(&json!("turn_completed")), "{kinds:?}");
}

#[tokio::test]
async fn an_agent_gets_the_earlier_messages() {
    let world = World::start("").await;
    let body = json!({ "model": "quintet", "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "One?" },
        { "role": "assistant", "content": "Yes." },
        { "role": "user", "content": "Two?" },
    ]});
    let (status, answer) = world.openai().post(CHAT, body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "echo: Two?");
    let sent = world.model.calls().pop().unwrap();
    let messages = sent["messages"].as_array().unwrap();
    assert!(messages[0]["content"].as_str().unwrap().contains("Be brief."), "{messages:?}");
    let contents: Vec<&Value> = messages[1..].iter().map(|message| &message["content"]).collect();
    assert_eq!(contents, [&json!("One?"), &json!("Yes."), &json!("Two?")]);
}

#[tokio::test]
async fn a_call_that_needs_approval_does_not_run_and_does_not_hang() {
    let world =
        World::start("[approval]\nkinds = [\"write\", \"exec\"]\n[verify]\nauto = false\n").await;
    let client = world.openai();
    let tool = json!({ "name": "shell", "args": { "command": "touch ran" } });
    let steps = json!([{ "tools": [tool] }, { "text": "Then not." }]);
    let workspace = json!({ "metadata": { "workspace": world.workspace() } });
    let (status, answer) =
        client.post(CHAT, with(chat_body(AGENT, steps.clone()), workspace.clone())).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "Then not.");
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let text =
        streamed(&client, CHAT, with(chat_body(AGENT, steps.clone()), workspace.clone())).await;
    assert_eq!(content(&frames(&text)), "Then not.");
    let (status, response) =
        client.post("/v1/responses", with(response_body(AGENT, steps), workspace)).await;
    assert_eq!((status, &response["status"]), (200, &json!("completed")), "{response}");
    assert!(!world.workspace().join("ran").exists());
    let sent = world.model.calls().pop().unwrap();
    let received = sent["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    assert!(received.contains("needs approval"), "{received}");
}

#[tokio::test]
async fn a_clients_tool_is_run_by_the_client() {
    let mut world = World::start(NO_APPROVALS).await;
    let client = world.openai();
    let call = |city: &str| json!({ "name": "weather", "args": { "city": city }, "id": "call_1" });
    let own = json!({ "name": "shell", "args": { "command": "touch ran" }, "id": "call_3" });
    let other = json!({ "name": "weather", "args": { "city": "Rome" }, "id": "call_2" });
    let steps =
        json!([{ "text": "Looking.", "tools": [call("Oslo"), other, own] }, { "text": "Cold." }]);
    let tools = json!({
        "tools": [{ "type": "function", "function": weather() }],
        "metadata": { "workspace": world.workspace() },
    });
    let body = with(chat_body(AGENT, steps), tools);
    let (status, answer) = client.post(CHAT, body.clone()).await;
    assert_eq!(status, 200, "{answer}");
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let calls = choice["message"]["tool_calls"].as_array().unwrap().clone();
    assert_eq!(calls.len(), 2, "the daemon's own call is not sent: {calls:?}");
    assert_eq!(calls[0]["function"]["arguments"], "{\"city\":\"Oslo\"}");
    assert!(!world.workspace().join("ran").exists(), "it waits for the calls before it");
    // The client may take its time, and the daemon may restart meanwhile.
    world.kill();
    world.restart();
    let client = world.openai();
    let result =
        |call: &Value| json!({ "role": "tool", "tool_call_id": call["id"], "content": "3" });
    let mut body = body;
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(choice["message"].clone());
    messages.push(result(&calls[0]));
    let (status, refused) = client.post(CHAT, body.clone()).await;
    assert_eq!(status, 400);
    assert!(refused["error"]["message"].as_str().unwrap().contains("call_2"), "{refused}");
    body["messages"].as_array_mut().unwrap().push(result(&calls[1]));
    let text = streamed(&client, CHAT, body.clone()).await;
    assert_eq!(content(&frames(&text)), "Cold.");
    assert!(world.workspace().join("ran").exists());
    let (_, sessions) = world.client().get("/v1/sessions").await;
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    // Sent again, no turn waits for the results, so a new session gets the conversation.
    let (status, again) = client.post(CHAT, body).await;
    assert_eq!(
        (status, &again["choices"][0]["message"]["content"]),
        (200, &json!("Cold.")),
        "{again}"
    );
}

#[tokio::test]
async fn a_clients_tool_replaces_a_tool_of_the_daemon() {
    let world = World::start(NO_APPROVALS).await;
    let tool = json!({ "name": "shell", "args": { "command": "touch ran" } });
    let function = json!({ "name": "shell", "parameters": { "type": "object" } });
    let body = with(
        chat_body(AGENT, json!([{ "tools": [tool] }])),
        json!({ "tools": [{ "type": "function", "function": function }] }),
    );
    let (status, answer) = world.openai().post(CHAT, body).await;
    assert_eq!(
        (status, &answer["choices"][0]["finish_reason"]),
        (200, &json!("tool_calls")),
        "{answer}"
    );
}

#[tokio::test]
async fn disconnecting_cancels_the_run() {
    let world = World::start("").await;
    let client = world.openai();
    for stream in [true, false] {
        let steps = json!([{ "deltas": ["a", "b"], "hang": true }]);
        let body = with(chat_body(AGENT, steps), json!({ "stream": stream }));
        let request = client.unhurried(Method::POST, CHAT).body(body.to_string());
        let request_task = tokio::spawn(async move {
            let mut response = request.send().await.unwrap();
            while response.chunk().await.unwrap().is_some() {}
        });
        world.model.streaming(1).await;
        request_task.abort();
        world.model.streaming(0).await;
        until("the session is cancelled", async || {
            let (_, sessions) = world.client().get("/v1/sessions").await;
            sessions[0]["status"] == "canceled"
        })
        .await;
    }
    // The call of a provider's model ends, too.
    let body =
        with(chat_body(PROXY, json!([{ "text": "a", "hang": true }])), json!({ "stream": true }));
    let mut response = post(&client, CHAT, &body).await;
    response.chunk().await.unwrap();
    drop(response);
    world.model.streaming(0).await;
}

#[tokio::test]
async fn a_run_interrupted_by_a_restart_is_cancelled() {
    let mut world = World::start("").await;
    let steps = json!([{ "text": "a", "hang": true }]);
    let body = with(chat_body(AGENT, steps), json!({ "stream": true }));
    let mut response = post(&world.openai(), CHAT, &body).await;
    response.chunk().await.unwrap();
    world.kill();
    world.restart();
    let client = world.client();
    until("the session is cancelled", async || {
        let (_, sessions) = client.get("/v1/sessions").await;
        sessions[0]["status"] == "canceled"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_a_stream_with_an_error() {
    let mut world = World::start("").await;
    let steps = json!([{ "text": "half", "hang": true }]);
    let body = with(chat_body(AGENT, steps), json!({ "stream": true }));
    let mut response = post(&world.openai(), CHAT, &body).await;
    let mut received = String::new();
    while !received.contains("half") {
        let piece = response.chunk().await.unwrap();
        let piece = piece.unwrap_or_else(|| panic!("the stream ended after {received:?}"));
        received.push_str(std::str::from_utf8(&piece).unwrap());
    }
    tokio::task::block_in_place(|| world.terminate());
    while let Some(piece) = response.chunk().await.unwrap() {
        received.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(received.contains("\"error\":{"), "{received}");
}

#[tokio::test]
async fn a_failed_run_is_reported_and_not_retried() {
    let world = World::start("").await;
    let client = world.openai();
    let cut = json!([{ "deltas": ["a", "b"], "cut": true }]);
    for model in [PROXY, AGENT] {
        let response = post(&client, CHAT, &chat_body(model, cut.clone())).await;
        assert!(response.status().is_server_error(), "{model}: {}", response.status());
        assert_eq!(response.headers()["x-should-retry"], "false");
        let gaps = json!([{ "deltas": ["a", "b"], "gap_ms": 100, "cut": true }]);
        let frames = failed_stream(&client, CHAT, chat_body(model, gaps)).await;
        if let Some(last) = frames.last() {
            assert_eq!(content(&frames), "ab");
            assert!(last["error"]["message"].is_string(), "{last}");
        }
    }
    // A failure before the first output is an error response.
    let refused = json!([{ "status": 400, "message": "no such thing" }]);
    for model in [PROXY, AGENT] {
        let body = with(chat_body(model, refused.clone()), json!({ "stream": true }));
        let response = post(&client, CHAT, &body).await;
        assert_eq!(response.status(), 400, "{model}");
    }
}

#[tokio::test]
async fn pictures_reach_the_model() {
    let world = World::start("").await;
    let url = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    for model in [PROXY, AGENT] {
        let parts = json!([
            { "type": "text", "text": "What is it?" },
            { "type": "image_url", "image_url": { "url": url } },
        ]);
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": parts }] });
        let (status, answer) = world.openai().post(CHAT, body).await;
        assert_eq!(status, 200, "{answer}");
        let sent = world.model.calls().pop().unwrap();
        let last = sent["messages"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(last["content"][1]["image_url"]["url"], url, "{model}");
    }
}
