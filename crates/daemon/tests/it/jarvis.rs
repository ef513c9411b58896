//! The desktop-assistant protocol over real sockets.

mod audit;
mod memory;
mod requests;
mod sessions;
mod tools;

use serde_json::{Value, json};

use crate::daemon::World;
use crate::desktop::{Frame, events, scripted, text};

/// A configuration without approvals and verification.
pub(crate) const NO_APPROVALS: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";

/// The tools of the last model call.
fn offered(world: &World) -> Vec<String> {
    let calls = world.model.calls();
    let tools = calls.last().expect("the model was called")["tools"].clone();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.as_array().map(|tools| tools.iter().map(name).collect()).unwrap_or_default()
}

/// The events without their ids.
fn without_ids(frames: &[Frame]) -> Vec<(String, Value)> {
    frames.iter().map(|frame| (frame.event.clone(), frame.data.clone())).collect()
}

#[tokio::test]
async fn the_health_check_succeeds() {
    let world = World::start("").await;
    let (status, health) = world.desktop().client.get("/health").await;
    assert_eq!((status, &health["healthy"]), (200, &json!(true)));
    assert!(health["uptime_ms"].is_u64() && health["version"].is_string(), "{health}");
    assert_eq!(health.as_object().unwrap().len(), 3);
}

#[tokio::test]
async fn a_message_is_answered_as_a_stream_or_at_once() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let frames = desktop
        .chat(&id, json!([{ "thought": "hm", "deltas": ["Sure - ", "here it is"], "gap_ms": 20 }]))
        .await
        .rest()
        .await;
    assert_eq!(text(&frames), "Sure - here it is");
    assert_eq!(events(&frames), ["assistant.delta", "assistant.final"]);
    assert_eq!(frames[frames.len() - 1].data, json!({ "text": "Sure - here it is" }));
    let other = desktop.session("j_2").await;
    let (status, answer) = desktop.ask(&other, "hello").await;
    let parts = json!([{ "type": "text", "text": "echo: hello" }]);
    assert_eq!((status, answer), (200, json!({ "assistant": { "parts": parts } })));
}

#[tokio::test]
async fn a_failed_turn_reports_the_reason() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let script = json!([{ "status": 401, "message": "who are you" }]);
    let frames = desktop.chat(&id, script.clone()).await.rest().await;
    assert_eq!(events(&frames), ["error"]);
    let error = &frames[0].data;
    assert!(error["code"].is_string() && error["message"].is_string(), "{error}");
    assert_eq!(error.as_object().unwrap().len(), 2, "{error}");
    let (status, body) = desktop.ask(&id, &scripted(&script)).await;
    assert_eq!((status, &body["error"]["code"]), (502, &error["code"]));
    assert_eq!(body["error"]["details"], json!({}));
}

#[tokio::test]
async fn a_stream_resumes_at_any_byte_even_after_a_restart() {
    let mut world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let deltas = json!(["one ", "twö ", "three"]);
    let all = desktop.chat(&id, json!([{ "deltas": deltas, "gap_ms": 30 }])).await.rest().await;
    world.kill();
    world.restart();
    let desktop = world.desktop();
    for (n, frame) in all.iter().enumerate() {
        if n + 1 == all.len() {
            continue;
        }
        let rest = desktop.follow(&id, Some(&frame.id)).await.turn().await;
        assert_eq!(text(&rest), text(&all[n + 1..]), "after {}", frame.id);
        assert_eq!(rest[rest.len() - 1], all[all.len() - 1]);
    }
    let query = format!("/v1/stream?general_session_id={id}&last_event_id=");
    for gone in ["999", "nonsense", "-1"] {
        let (status, body) = desktop.client.get(&format!("{query}{gone}")).await;
        assert_eq!((status, &body["error"]["code"]), (410, &json!("EVENT_ID_GONE")), "{gone}");
    }
}

#[tokio::test]
async fn a_message_that_is_sent_again_joins_its_turn() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let go = world.home.path().join("go");
    let message = scripted(&json!([{ "deltas": ["a ", "b ", "c"], "hold_until": go }]));
    let mut first = desktop.say(&id, &message, &[]).await;
    let seen = first.next().await.unwrap();
    let (again, other) =
        (desktop.say(&id, &message, &[]), desktop.try_say(&id, "other", true, &[]));
    let (again, other) = tokio::join!(again, other);
    assert_eq!(other.status(), 409);
    let other: Value = serde_json::from_str(&other.text().await.unwrap()).unwrap();
    assert_eq!(other["error"]["code"], "TURN_IN_PROGRESS");
    let from_there = desktop.say(&id, &message, &[("last-event-id", &seen.id)]).await;
    std::fs::write(&go, "").unwrap();
    let (first, again, rest) = tokio::join!(first.rest(), again.rest(), from_there.rest());
    assert_eq!(text(&again), "a b c");
    assert_eq!(format!("{}{}", seen.data["text"].as_str().unwrap(), text(&rest)), "a b c");
    let last = |frames: &[Frame]| frames[frames.len() - 1].clone();
    assert_eq!((last(&first), last(&first)), (last(&again), last(&rest)));
    assert_eq!(world.model.calls().len(), 1);
    // After its turn ended, the same text is a new message.
    let anew = desktop.say(&id, &message, &[]).await.rest().await;
    assert_eq!((text(&anew), world.model.calls().len()), ("a b c".into(), 2));
}

#[tokio::test]
async fn a_message_with_a_key_is_answered_only_once() {
    let mut world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let key = [("idempotency-key", "k-1")];
    let first = desktop.say(&id, "hello", &key).await.rest().await;
    world.kill();
    world.restart();
    let desktop = world.desktop();
    let again = desktop.say(&id, "hello", &key).await.rest().await;
    assert_eq!((text(&again), again.last()), (text(&first), first.last()));
    let answer = desktop.try_say(&id, "hello", false, &key).await;
    let answer: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
    assert_eq!(answer["assistant"]["parts"][0]["text"], "echo: hello");
    let other = desktop.try_say(&id, "something else", true, &key).await;
    assert_eq!(other.status(), 409);
    assert!(other.text().await.unwrap().contains("IDEMPOTENCY_KEY_REUSED"));
    assert_eq!(world.model.calls().len(), 1);
}

#[tokio::test]
async fn two_desktops_get_the_same_events() {
    let world = World::start("").await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let (mut one, mut two) =
        (desktop.follow(&id, None).await, desktop.follow(&id, Some("0")).await);
    let sent =
        desktop.chat(&id, json!([{ "deltas": ["x ", "y"], "gap_ms": 30 }])).await.rest().await;
    let (one, two) = (one.turn().await, two.turn().await);
    assert_eq!((text(&one), text(&two)), (text(&sent), text(&sent)));
    assert_eq!(without_ids(&one[one.len() - 1..]), without_ids(&two[two.len() - 1..]));
}

#[tokio::test]
async fn sending_the_message_again_continues_a_turn_that_waits_after_a_crash() {
    let mut world = World::start(&format!("{NO_APPROVALS}[recovery]\npolicy = \"ask\"\n")).await;
    let desktop = world.desktop();
    let id = desktop.session("j_1").await;
    let go = world.home.path().join("go");
    let message = scripted(&json!([{ "deltas": ["a ", "b ", "c ", "d"], "hold_until": go }]));
    let seen = desktop.say(&id, &message, &[]).await.next().await.unwrap();
    assert!(seen.data["text"].as_str().unwrap().starts_with("a "), "{seen:?}");
    world.kill();
    std::fs::write(&go, "").unwrap();
    world.restart();
    let frames = world.desktop().say(&id, &message, &[]).await.rest().await;
    assert!(text(&frames).starts_with("a "), "earlier text is sent again");
    assert_eq!(frames[frames.len() - 1].data, json!({ "text": "a b c d" }));
    assert_eq!(world.model.calls().len(), 2);
}
