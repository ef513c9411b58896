//! Writing, searching and reading memory over the desktop protocol.

use serde_json::json;

use crate::daemon::World;

#[tokio::test]
async fn written_entries_are_found_and_read() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let write = |target: &str, content: &str| {
        let body = json!({ "general_session_id": id, "target": target, "content": content });
        desktop.client.post("/v1/memory/write", body)
    };
    let (status, body) = write("long_term", "Drinks oolong tea in the morning.").await;
    assert_eq!((status, body), (200, json!({ "path": "memory/MEMORY.md" })));
    let (status, daily) = write("daily", "Met the plumber.").await;
    assert_eq!(status, 200, "{daily}");
    assert_ne!(daily["path"], "memory/MEMORY.md");
    let (status, found) = desktop.client.get("/v1/memory/search?q=oolong&limit=5").await;
    assert_eq!(status, 200, "{found}");
    let first = &found["results"][0];
    assert_eq!(first["path"], "memory/MEMORY.md");
    assert!(first["excerpt"].as_str().unwrap().contains("oolong"), "{first}");
    assert!(first["line_start"].as_u64().unwrap() >= 1 && first["score"].is_number(), "{first}");
    let (_, none) = desktop.client.get("/v1/memory/search?q=oolong&kind=daily").await;
    assert_eq!(none, json!({ "results": [] }));
    let url = format!("{}/v1/memory/search?q=oolong", world.jarvis());
    let headers = reqwest::get(&url).await.unwrap().headers().clone();
    assert_eq!(headers["x-search"], "words");
    assert!(headers.contains_key("x-search-reason"), "{headers:?}");
    let line = first["line_end"].as_u64().unwrap();
    let path = format!("/v1/memory/get?path=memory/MEMORY.md&line_start=1&line_end={line}");
    let (status, passage) = desktop.client.get(&path).await;
    assert_eq!(status, 200, "{passage}");
    assert!(passage["content"].as_str().unwrap().contains("oolong"), "{passage}");
    let file = world.home.path().join("data/workspace/memory/MEMORY.md");
    assert!(std::fs::read_to_string(file).unwrap().contains("oolong"));
}

#[tokio::test]
async fn memory_requests_cannot_leave_the_workspace() {
    let world = World::start("").await;
    let desktop = world.desktop();
    for path in ["../quintet.db", "/etc/passwd", "memory/../../quintet.db"] {
        let (status, body) = desktop.client.get(&format!("/v1/memory/get?path={path}")).await;
        assert!(status == 400 || status == 404, "{path}: {status} {body}");
    }
    let unknown = json!({ "general_session_id": "sess_x", "target": "daily", "content": "x" });
    let (status, body) = desktop.client.post("/v1/memory/write", unknown).await;
    assert_eq!((status, &body["error"]["code"]), (404, &json!("SESSION_NOT_FOUND")));
}
