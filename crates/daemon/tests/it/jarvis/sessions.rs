//! The sessions that desktops open.

use serde_json::json;

use super::{NO_APPROVALS, offered};
use crate::daemon::World;
use crate::desktop::{open_app, text};

#[tokio::test]
async fn a_name_opens_the_same_session_after_a_restart() {
    let mut world = World::start("").await;
    let desktop = world.desktop();
    let (one, two) = (desktop.session("j_1").await, desktop.session("j_2").await);
    assert_ne!(one, two);
    assert_eq!(desktop.session("j_1").await, one);
    world.kill();
    world.restart();
    let desktop = world.desktop();
    assert_eq!(desktop.session("j_1").await, one);
    // A preferred session is used and gets the name; an unknown one is ignored.
    let open = |name: &str, id: &str| {
        desktop.open(json!({ "jarvis_session_id": name, "preferred_session_id": id }))
    };
    assert_eq!(open("j_1", &two).await, two);
    assert_eq!(desktop.session("j_1").await, two);
    assert_eq!(open("j_2", "sess_none").await, two);
    assert_eq!(open("j_2", "../etc").await, two);
    assert!(world.home.path().join("data/workspace").is_dir());
}

#[tokio::test]
async fn concurrent_requests_with_one_name_get_the_same_session() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let all = (0..8).map(|_| {
        let desktop = desktop.clone();
        async move { desktop.session("j_1").await }
    });
    let mut set = tokio::task::JoinSet::new();
    all.for_each(|one| drop(set.spawn(one)));
    let mut ids = set.join_all().await;
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
}

#[tokio::test]
async fn an_expired_session_is_only_continued_on_request() {
    let config = format!("{NO_APPROVALS}[jarvis]\nsession_expiry = 1\n");
    let world = World::start(&config).await;
    let desktop = world.desktop();
    let old = desktop.session("j_1").await;
    let mut new = old.clone();
    while new == old {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        new = desktop.session("j_1").await;
    }
    let body = json!({ "jarvis_session_id": "j_1", "preferred_session_id": old });
    assert_eq!(desktop.open(body).await, old);
}

#[tokio::test]
async fn a_session_of_another_protocol_can_be_continued() {
    let world = World::start(NO_APPROVALS).await;
    let (client, desktop) = (world.client(), world.desktop());
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "from the harness" }])).await;
    client.until_over(&id).await;
    let body = json!({ "jarvis_session_id": "j_1", "preferred_session_id": id });
    assert_eq!(desktop.open(body).await, id);
    let script = json!([{ "tools": [open_app("a")] }, { "text": "from the desktop" }]);
    let mut frames = desktop.chat(&id, script).await;
    let request = frames.next_of("tool.request").await;
    // The other protocol shows the call, too, and its tools stay.
    let shown = client.until(&id, |event| event.json["data"]["tool"] == "open_app").await;
    assert_eq!(shown[shown.len() - 1].kind(), "tool_call_started");
    desktop.done(&id, &request, "ok").await;
    assert_eq!(text(&frames.rest().await), "from the desktop");
    let names = offered(&world);
    assert!(names.contains(&"shell".into()) && names.contains(&"open_app".into()), "{names:?}");
    assert!(world.model.calls()[1].to_string().contains("from the harness"));
}
