//! Tests of following a session: history, live, resumed, after a restart.

use reqwest::Method;
use serde_json::json;

use crate::client::{Event, over, text};
use crate::daemon::World;

#[tokio::test]
async fn a_stream_can_be_resumed_after_every_single_event() {
    let mut world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let tool = json!({ "name": "shell", "args": { "command": "echo x" } });
    client.say(&id, json!([{ "deltas": ["one ", "twö ", "three"], "gap_ms": 30, "tools": [tool] }, { "text": "four" }])).await;
    let all = client.until_over(&id).await;
    assert_eq!(text(&all), "one twö threefour");
    world.kill();
    world.restart();
    for (n, event) in all.iter().enumerate() {
        let rest = if n + 1 == all.len() {
            Vec::new()
        } else {
            world.client().follow(&id, &event.id).await.until(over).await
        };
        assert_eq!(text(&rest), text(&all[n + 1..]), "after {}", event.id);
        let but_text = |events: &[Event]| -> Vec<Event> {
            events.iter().filter(|event| event.kind() != "model_output_delta").cloned().collect()
        };
        let missed = all[n + 1..]
            .iter()
            .filter(|event| event.kind() != "tool_call_progress")
            .cloned()
            .collect::<Vec<_>>();
        assert_eq!(but_text(&rest), but_text(&missed), "after {}", event.id);
    }
}

#[tokio::test]
async fn last_event_id_and_after_are_equivalent() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "hello" }])).await;
    client.until_over(&id).await;
    let path = format!("/v1/sessions/{id}/events?format=json");
    let by_header =
        client.request(Method::GET, &path).header("last-event-id", "3").send().await.unwrap();
    let by_header: serde_json::Value =
        serde_json::from_str(&by_header.text().await.unwrap()).unwrap();
    let (_, by_query) = client.get(&format!("{path}&after=3")).await;
    assert_eq!(by_header, by_query);
    assert_eq!(by_query[0]["type"], "model_resolved");
    let (_, first) = client.get(&format!("{path}&max=2")).await;
    let kinds: Vec<&str> =
        first.as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session_created", "message_added"]);
    assert_eq!(client.get(&format!("{path}&after=nonsense")).await.0, 400);
    assert_eq!(client.get(&format!("{path}&after=999")).await.0, 400);
    assert_eq!(client.get(&format!("{path}&max=many")).await.0, 400);
}

#[tokio::test]
async fn a_position_after_the_end_is_refused() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let mut events = client.follow(&id, "999").await;
    let first = events.next().await.unwrap();
    assert_eq!((first.kind(), &first.json["data"]["last_event_id"]), ("stream_reset", &json!("1")));
    assert_eq!(events.next().await.unwrap().kind(), "session_created");
}

#[tokio::test]
async fn clients_of_one_session_see_the_same() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let (one, two) = (client.follow(&id, "0").await, client.follow(&id, "0").await);
    client.say(&id, json!([{ "thought": "hm", "deltas": ["a", "b", "c"], "gap_ms": 20 }])).await;
    let (one, two) = tokio::join!(one.until(over), two.until(over));
    assert_eq!((text(&one), text(&two)), ("abc".into(), "abc".into()));
    let ids = |events: &[Event]| -> Vec<String> {
        events
            .iter()
            .filter(|event| !matches!(event.kind(), "model_output_delta" | "model_thought_delta"))
            .map(|event| event.id.clone())
            .collect()
    };
    assert_eq!(ids(&one), ids(&two));
}

#[tokio::test]
async fn an_answer_equals_its_joined_deltas() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "thought": "hm", "deltas": ["a", "b"] }])).await;
    client.until_over(&id).await;
    let history = client.history(&id).await;
    let deltas = |kind: &str| -> String {
        let of_kind = history.iter().filter(|event| event["type"] == kind);
        of_kind.map(|event| event["data"]["delta"].as_str().unwrap()).collect()
    };
    assert_eq!(deltas("model_output_delta"), "ab");
    assert_eq!(deltas("model_thought_delta"), "hm");
}

#[tokio::test]
async fn a_running_command_shows_its_output() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let follower = client.follow(&id, "0").await;
    let tool = json!({ "name": "shell", "args": { "command": "echo early; until [ -e go ]; do sleep 0.05; done" } });
    client.say(&id, json!([{ "tools": [tool] }])).await;
    follower
        .until(|event| {
            event.kind() == "tool_call_progress" && event.json["data"]["delta"] == "early\n"
        })
        .await;
    std::fs::write(world.workspace().join("go"), "").unwrap();
    client.until_over(&id).await;
}
