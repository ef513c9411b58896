//! Tests of invalid requests and their errors.

use reqwest::{Method, header};
use serde_json::json;

use crate::daemon::World;

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let world = World::start("").await;
    let client = world.client();
    let get = |name: header::HeaderName, value: &str| {
        client.request(Method::GET, "/v1/sessions").header(name, value).send()
    };
    let refused = get(header::HOST, "evil.example").await.unwrap();
    assert_eq!(refused.status(), 403);
    assert!(refused.headers().get("access-control-allow-origin").is_none());
    let body = refused.text().await.unwrap();
    assert!(body.starts_with(r#"{"error":"host not allowed: evil.example; "#), "{body}");
    assert_eq!(get(header::ORIGIN, "https://evil.example").await.unwrap().status(), 403);
    let preflight = client.request(Method::OPTIONS, "/v1/sessions").send().await.unwrap();
    assert_eq!(preflight.status(), 204);
}

#[tokio::test]
async fn a_configured_token_is_required() {
    let world = World::start("[harness]\nauth_token = \"s3cret-token\"\n").await;
    let client = world.client();
    let with = |token: &str| client.request(Method::GET, "/v1/sessions").bearer_auth(token).send();
    let refused = with("wrong").await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(refused.text().await.unwrap(), "");
    assert_eq!(client.request(Method::GET, "/healthz").send().await.unwrap().status(), 401);
    assert_eq!(with("s3cret-token").await.unwrap().status(), 200);
}

#[tokio::test]
async fn invalid_requests_get_a_status_and_a_reason() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let said = |error: &str| json!({ "error": error });
    assert_eq!(client.get("/v1/nothing").await, (404, said("unknown endpoint")));
    assert_eq!(client.get("/v1/sessions/sess_x").await, (404, said("session not found: sess_x")));
    assert_eq!(
        client.get("/v1/sessions/sess_x/events").await,
        (404, said("session not found: sess_x"))
    );
    assert_eq!(client.try_say("sess_x", json!([])).await, (400, said("session not found: sess_x")));
    let method =
        client.request(Method::DELETE, &format!("/v1/sessions/{id}")).send().await.unwrap();
    assert_eq!((method.status().as_u16(), method.text().await.unwrap()), (405, String::new()));
    let path = format!("/v1/sessions/{id}/messages");
    let malformed = client.request(Method::POST, &path).body("{").send().await.unwrap();
    assert_eq!(
        (malformed.status().as_u16(), malformed.text().await.unwrap()),
        (400, said("invalid json").to_string())
    );
    let huge =
        client.request(Method::POST, &path).body(vec![b' '; 9 * 1024 * 1024]).send().await.unwrap();
    assert_eq!(
        (huge.status().as_u16(), huge.text().await.unwrap()),
        (413, said("request body too large").to_string())
    );
    let empty = client.post(&path, json!({ "role": "user", "parts": [], "auto_run": true })).await;
    assert_eq!(empty, (400, said("message has no parts")));
    let model =
        client.post(&format!("/v1/sessions/{id}/model"), json!({ "model": "nobody/x" })).await;
    assert_eq!(
        model,
        (400, said("unknown model: nobody/x; `quintet models` lists those that can be used"))
    );
    // Nothing was stored, and the daemon is healthy.
    assert_eq!(client.history(&id).await.len(), 1);
    assert_eq!(client.get("/healthz").await.1["ok"], true);
}

#[tokio::test]
async fn lists_and_documents_are_served() {
    let world = World::start("").await;
    let client = world.client();
    assert_eq!(client.get("/v1/sessions").await, (200, json!([])));
    let first = client.create(world.workspace()).await;
    let second = client.create(world.workspace()).await;
    let (_, list) = client.get("/v1/sessions").await;
    assert_eq!((&list[0]["id"], &list[1]["id"]), (&json!(second), &json!(first)));
    let (_, models) = client.get("/v1/models").await;
    let ids: Vec<&str> = models["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert!(ids.contains(&"fake/fake") && ids.contains(&"demo/demo"), "{ids:?}");
    assert_eq!(client.get("/v1/runs").await, (200, json!([])));
    assert_eq!(client.get("/openapi.json").await.1["openapi"], "3.1.0");
}
