//! Tests of harness requests of the original's web page, besides sessions.

use serde_json::json;

use crate::daemon::World;

#[tokio::test]
async fn a_folder_is_shown_before_there_is_a_session() {
    let world = World::start("").await;
    let client = world.client();
    let folder = world.workspace();
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/a b.rs"), "").unwrap();
    std::fs::write(folder.join("README.md"), "").unwrap();
    let tree = |path: &str| format!("/v1/workspace/tree?workspace_path={path}");
    let (status, shown) = client.get(&tree(&folder.to_string_lossy().replace('/', "%2F"))).await;
    assert_eq!(status, 200);
    assert_eq!(shown, json!({ "root": folder, "files": ["README.md", "src/a b.rs"] }));
    let (status, refused) = client.get("/v1/workspace/tree").await;
    assert_eq!((status, &refused["error"]), (400, &json!("workspace_path required")));
    for wrong in ["src", "/no/such/folder", "%00"] {
        let (status, refused) = client.get(&tree(wrong)).await;
        assert_eq!(
            (status, &refused["error"]),
            (400, &json!("workspace_path must be a directory")),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn the_model_that_a_page_selects_is_used() {
    let mut world = World::start("").await;
    let client = world.client();
    let (_, models) = client.get("/v1/models").await;
    assert_eq!(models["policy"]["preferred_models"], json!(["fake/fake"]));
    let chosen = json!({
        "require_tools": false,
        "require_vision": false,
        "max_cost_usd": null,
        "preferred_models": ["fake:other"],
    });
    let (status, policy) = client.post("/v1/model-policy", chosen).await;
    assert_eq!((status, &policy["preferred_models"]), (200, &json!(["fake/other"])));
    // The choice survives a restart, and applies to existing sessions.
    world.kill();
    world.restart();
    let client = world.client();
    let (_, models) = client.get("/v1/models").await;
    assert_eq!(models["policy"], policy);
    assert_eq!(client.get("/v1/model-policy").await, (200, policy));
    let id = client.create(world.workspace()).await;
    let resolved = async |id: &str| {
        client.say(id, json!([{ "text": "hi" }])).await;
        client.until_over(id).await;
        let history = client.history(id).await;
        let last = history.iter().rfind(|event| event["type"] == "model_resolved");
        last.unwrap()["data"]["model"].clone()
    };
    assert_eq!(resolved(&id).await, "fake/other");
    // A session with its own model keeps it.
    client.post(&format!("/v1/sessions/{id}/model"), json!({ "model": "fake/fake" })).await;
    assert_eq!(resolved(&id).await, "fake/fake");
    // A model that is no longer provided does not prevent an answer.
    let gone = json!({ "preferred_models": ["nobody/big"] });
    assert_eq!(client.post("/v1/model-policy", gone).await.0, 200);
    let id = client.create(world.workspace()).await;
    assert_eq!(resolved(&id).await, "fake/fake");
    for wrong in [json!({ "preferred_models": ["other"] }), json!({ "preferred_models": 1 })] {
        assert_eq!(client.post("/v1/model-policy", wrong).await.0, 400);
    }
}
