//! Summaries and titles.

use serde_json::{Value, json};

use super::{AUTH, Guest, detail};
use crate::daemon::World;

/// A text that makes the scripted model say something.
fn saying(text: &str) -> String {
    format!("go {{{{script: {}}}}}", json!([{ "text": text }]))
}

fn fault(kind: &str, place: &[Value], message: &str) -> Value {
    json!({ "detail": [{ "type": kind, "loc": place, "msg": message }] })
}

#[tokio::test]
async fn conversations_become_a_summary_and_facts() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let script = saying("SUMMARY:\nThey talked.\n\nFACTS:\n- likes tea\n- is in Rome\n");
    let asked = json!({ "conversations": ["the first one", script], "user_id": "u1" });
    let (status, said) = guest.post("/api/semantic/summarize", asked).await;
    let facts = json!(["likes tea", "is in Rome"]);
    let whole = json!({ "summary": "They talked.", "facts": facts, "success": true });
    assert_eq!((status, said), (200, whole));
    let calls = world.model.calls();
    let shown = calls[0]["messages"].to_string();
    assert!(shown.contains("the first one") && shown.contains("SUMMARY:"), "{shown}");
    assert!(calls[0]["tools"].is_null(), "{}", calls[0]);
}

#[tokio::test]
async fn a_conversation_is_named() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let title = async |written: &str, more: Value| {
        let mut asked = json!({
            "user_id": "u1", "user_message": saying(written), "assistant_message": "yes",
        });
        asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        guest.post("/api/semantic/title", asked).await
    };
    let named = |title: &str| (200, json!({ "title": title, "success": true }));
    assert_eq!(title("# \"Title: Fix the door.\"\nmore", json!({})).await, named("Fix the door"));
    assert_eq!(title("\n", json!({ "model_id": null })).await, named("New chat"));
    let other = json!({ "model_id": "other@@variant", "model_provider": "fake" });
    assert_eq!(title("Another", other).await, named("Another"));
    assert_eq!(world.model.calls().last().unwrap()["model"], "other");
    let unknown = json!({ "model_id": "m", "model_provider": "nobody" });
    let (status, said) = title("x", unknown).await;
    assert!((400..600).contains(&status) && said["detail"].is_string(), "{status} {said}");
}

#[tokio::test]
async fn what_is_asked_has_its_limits() {
    let world = World::start("").await;
    let guest = Guest::stranger(&world);
    let summarize = async |conversations: Value, user: Value| {
        let asked = json!({ "conversations": conversations, "user_id": user });
        guest.post("/api/semantic/summarize", asked).await
    };
    let place = [json!("body"), json!("conversations")];
    let few = "List should have at least 1 item after validation, not 0";
    assert_eq!(summarize(json!([]), json!("u")).await, (422, fault("too_short", &place, few)));
    let many = "List should have at most 100 items after validation, not 101";
    let said = summarize(json!(vec!["x"; 101]), json!("u")).await;
    assert_eq!(said, (422, fault("too_long", &place, many)));
    let long = "String should have at most 32768 characters";
    let inside = [json!("body"), json!("conversations"), json!(1)];
    let said = summarize(json!(["x", "ä".repeat(32_769)]), json!("u")).await;
    assert_eq!(said, (422, fault("string_too_long", &inside, long)));
    let said = summarize(json!("x"), json!("u")).await;
    assert_eq!(said, (422, fault("list_type", &place, "Input should be a valid list")));
    let place = [json!("body"), json!("user_id")];
    let default = "Value error, user_id cannot be default_user";
    let said = summarize(json!(["x"]), json!("default_user")).await;
    assert_eq!(said, (422, fault("value_error", &place, default)));
    let (status, said) =
        guest.post("/api/semantic/title", json!({ "user_id": "default_user" })).await;
    let faults = said["detail"].as_array().unwrap().iter();
    let kinds: Vec<&str> = faults.map(|fault| fault["type"].as_str().unwrap()).collect();
    assert_eq!((status, kinds), (422, vec!["value_error", "missing", "missing"]));
    assert_eq!(world.model.calls().len(), 0);
    let whole = "ä".repeat(32_768 - 40);
    assert_eq!(summarize(json!([whole, saying("SUMMARY: x")]), json!("u")).await.0, 200);
}

#[tokio::test]
async fn a_model_that_fails_is_a_bad_gateway() {
    let world = World::start(AUTH).await;
    let guest = Guest::register(&world).await;
    let script = format!("go {{{{script: {}}}}}", json!([{ "status": 401 }]));
    let asked = json!({ "user_id": guest.user, "user_message": script, "assistant_message": "" });
    let (status, said) = guest.post("/api/semantic/title", asked).await;
    assert_eq!((status, &said), (502, &detail("The model could not be asked: unauthorized")));
    let healthy = json!({ "status": "healthy", "message": "Semantic summarization service ready" });
    assert_eq!(guest.get("/api/semantic/health").await, (200, healthy));
}
