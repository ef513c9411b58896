//! Invalid requests.

use reqwest::Method;
use serde_json::{Value, json};

use super::*;
use crate::daemon::World;

#[tokio::test]
async fn errors_have_four_fields_and_name_the_parameter() {
    let world = World::start("").await;
    let client = world.openai();
    let user = json!([{ "role": "user", "content": "x" }]);
    let chat = |more: Value| with(json!({ "model": PROXY, "messages": user }), more);
    let response = |more: Value| with(json!({ "model": AGENT, "input": "x" }), more);
    let image = json!([{ "role": "user", "content": [
        { "type": "image_url", "image_url": { "url": "https://example.com/a.png" } },
    ]}]);
    let rows = [
        ("/v1/chat/completions", json!([]), Value::Null),
        ("/v1/chat/completions", json!({}), json!("model")),
        ("/v1/chat/completions", chat(json!({ "model": 1 })), json!("model")),
        ("/v1/chat/completions", json!({ "model": PROXY }), json!("messages")),
        ("/v1/chat/completions", chat(json!({ "messages": [] })), json!("messages")),
        ("/v1/chat/completions", chat(json!({ "messages": "x" })), json!("messages")),
        ("/v1/chat/completions", chat(json!({ "messages": [1] })), json!("messages[0]")),
        ("/v1/chat/completions", chat(json!({ "messages": [{}] })), json!("messages[0].role")),
        (
            "/v1/chat/completions",
            chat(json!({ "messages": [{ "role": "user", "content": 1 }] })),
            json!("messages[0].content"),
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "messages": image })),
            json!("messages[0].content[0].image_url.url"),
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "messages": [{ "role": "user", "name": "a b", "content": "x" }] })),
            json!("messages[0].name"),
        ),
        (
            "/v1/chat/completions",
            chat(json!({ "messages": [{ "role": "user", "content": [
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAEC", "detail": "x" } },
            ]}]})),
            json!("messages[0].content[0].image_url.detail"),
        ),
        ("/v1/chat/completions", chat(json!({ "n": 2 })), json!("n")),
        ("/v1/chat/completions", chat(json!({ "temperature": 3 })), json!("temperature")),
        ("/v1/chat/completions", chat(json!({ "max_tokens": "9" })), json!("max_tokens")),
        ("/v1/chat/completions", chat(json!({ "stream": "yes" })), json!("stream")),
        ("/v1/chat/completions", chat(json!({ "tools": [{}] })), json!("tools[0].type")),
        ("/v1/chat/completions", chat(json!({ "tool_choice": "x" })), json!("tool_choice")),
        (
            "/v1/chat/completions",
            json!({ "model": AGENT, "messages": [{ "role": "assistant", "content": "x" }] }),
            json!("messages"),
        ),
        (
            "/v1/chat/completions",
            with(
                json!({ "model": AGENT, "messages": user }),
                json!({ "metadata": { "workspace": "here" } }),
            ),
            json!("metadata.workspace"),
        ),
        ("/v1/responses", json!({ "model": AGENT }), json!("input")),
        ("/v1/responses", response(json!({ "input": [] })), json!("input")),
        ("/v1/responses", response(json!({ "input": [{ "type": "x" }] })), json!("input[0].type")),
        (
            "/v1/responses",
            response(json!({ "tools": [{ "type": "web_search" }] })),
            json!("tools[0].type"),
        ),
        (
            "/v1/responses",
            json!({ "model": PROXY, "input": "x", "background": true }),
            json!("background"),
        ),
        ("/v1/embeddings", json!({ "model": "x" }), json!("input")),
        (
            "/v1/audio/speech",
            json!({ "input": "x", "response_format": "mp3" }),
            json!("response_format"),
        ),
    ];
    for (path, body, param) in rows {
        let (status, answer) = client.post(path, body.clone()).await;
        assert_eq!(status, 400, "{path} {body}: {answer}");
        let error = answer["error"].as_object().unwrap();
        assert_eq!(error["type"], "invalid_request_error");
        assert_eq!(error["param"], param, "{body}: {answer}");
        assert!(error["message"].is_string() && error.contains_key("code"), "{answer}");
    }
    let (_, sessions) = world.client().get("/v1/sessions").await;
    assert_eq!(sessions, json!([]), "refused requests leave no sessions");
}

#[tokio::test]
async fn invalid_requests_are_refused_and_large_ones_answered() {
    let world = World::start("").await;
    let client = world.openai();
    for model in ["nobody/x", "quintet/nobody/x", "quintet/x", "x", ""] {
        for (path, body) in [
            ("/v1/chat/completions", chat_body(model, json!([]))),
            ("/v1/responses", response_body(model, json!([]))),
        ] {
            let (status, answer) = client.post(path, body).await;
            let code = &answer["error"]["code"];
            assert_eq!((status, code), (404, &json!("model_not_found")), "{model}: {answer}");
        }
    }
    for body in ["", "{", "nonsense", "\u{0}", "{\"model\":"] {
        let request = client.request(Method::POST, "/v1/chat/completions").body(body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 400, "{body:?}");
    }
    let (status, answer) = client.get("/v1/nothing").await;
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("unknown_url")));
    let (status, answer) = client.get("/v1/chat/completions").await;
    assert_eq!((status, &answer["error"]["code"]), (405, &json!("method_not_supported")));
    let large = format!("{} {}", "x".repeat(10 << 20), script(json!([{ "text": "much" }])));
    for model in [PROXY, AGENT] {
        let body = json!({ "model": model, "messages": [{ "role": "user", "content": large }] });
        let (status, answer) = client.post("/v1/chat/completions", body).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["choices"][0]["message"]["content"], "much");
    }
    let response = client.request(Method::POST, "/v1/chat/completions").body("x".repeat(33 << 20));
    assert_eq!(response.send().await.unwrap().status(), 413);
}

#[tokio::test]
async fn a_token_is_required_if_it_is_set() {
    let world = World::start("[auth]\ntoken = \"t0ken\"\n[approval]\nkinds = []\n").await;
    let client = world.openai();
    for (key, status) in [("Bearer t0ken", 200), ("Bearer other", 401), ("t0ken", 401)] {
        let request = client.request(Method::GET, "/v1/models").header("authorization", key);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), status, "{key}");
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        if status == 401 {
            assert_eq!(body["error"]["code"], "invalid_api_key");
        }
    }
}
