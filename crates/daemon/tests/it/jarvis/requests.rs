//! Invalid requests and the responses to them.

use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::daemon::World;
use crate::desktop::message;

#[tokio::test]
async fn every_error_has_the_same_format() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let mut extra = message(&id, "hi", true);
    extra["model"] = "x".into();
    let mut modeless = message(&id, "hi", true);
    modeless.as_object_mut().unwrap().remove("mode");
    let post =
        |path: &'static str, body: String| desktop.client.request(Method::POST, path).body(body);
    let requests = [
        (404, "NOT_FOUND", desktop.client.request(Method::GET, "/v1/nothing")),
        (405, "METHOD_NOT_ALLOWED", desktop.client.request(Method::GET, "/v1/chat")),
        (405, "METHOD_NOT_ALLOWED", desktop.client.request(Method::OPTIONS, "/v1/chat")),
        (400, "INVALID_REQUEST", post("/v1/chat", "{".into())),
        (400, "INVALID_REQUEST", post("/v1/chat", extra.to_string())),
        (400, "INVALID_REQUEST", post("/v1/chat", modeless.to_string())),
        (404, "SESSION_NOT_FOUND", post("/v1/chat", message("sess_x", "hi", true).to_string())),
        (413, "PAYLOAD_TOO_LARGE", post("/v1/chat", " ".repeat(9 * 1024 * 1024))),
        (
            415,
            "UNSUPPORTED_MEDIA_TYPE",
            post("/v1/chat", message(&id, "hi", true).to_string())
                .header(header::CONTENT_TYPE, "text/plain"),
        ),
        (
            400,
            "INVALID_REQUEST",
            post("/v1/chat", "a=b".into())
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded"),
        ),
        (
            403,
            "HOST_NOT_ALLOWED",
            desktop.client.request(Method::GET, "/health").header(header::HOST, "evil.example"),
        ),
        (
            403,
            "ORIGIN_NOT_ALLOWED",
            post("/v1/chat", message(&id, "hi", true).to_string())
                .header(header::ORIGIN, "https://evil.example"),
        ),
    ];
    for (status, code, request) in requests {
        let response = request.send().await.unwrap();
        assert_eq!(response.status().as_u16(), status, "{code}");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let body: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let message = body["error"]["message"].clone();
        assert!(message.is_string(), "{body}");
        let expected = json!({ "error": { "code": code, "message": message, "details": {} } });
        assert_eq!(body, expected);
    }
    // No request reached the model.
    assert!(world.model.calls().is_empty());
    assert_eq!(desktop.client.get("/openapi.json").await.1["openapi"], "3.1.0");
}
