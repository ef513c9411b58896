//! Responses.

use reqwest::Method;
use serde_json::{Value, json};

use super::*;
use crate::daemon::{WAIT_LIMIT, World, until};

const RESPONSES: &str = "/v1/responses";

fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect()
}

/// Checks that events are numbered from this number.
#[track_caller]
fn assert_numbered(frames: &[Value], from: u64) {
    for (number, frame) in (from..).zip(frames) {
        assert_eq!(frame["sequence_number"], number, "{frame}");
    }
}

#[tokio::test]
async fn a_stream_has_every_event_and_can_be_read_again() {
    let mut world = World::start(NO_APPROVALS).await;
    let client = world.openai();
    let steps =
        json!([{ "thought": "hm", "deltas": ["Hel", "lo"], "gap_ms": 20, "usage": [7, 3] }]);
    let frames = {
        let text = streamed(&client, RESPONSES, response_body(AGENT, steps)).await;
        assert!(text.starts_with("event: response.created\ndata: "), "{text}");
        frames(&text)
    };
    assert_numbered(&frames, 0);
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_summary_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    // Deltas that arrive together are merged.
    let mut received = kinds(&frames);
    received.dedup();
    assert_eq!(received, expected);
    let done = &frames.last().unwrap()["response"];
    assert_eq!(output_text(done), "Hello");
    assert_eq!(
        (&done["status"], &done["usage"]["total_tokens"]),
        (&json!("completed"), &json!(10))
    );
    let id = done["id"].as_str().unwrap();
    world.kill();
    world.restart();
    let client = world.openai();
    let (status, again) = client.get(&format!("{RESPONSES}/{id}")).await;
    assert_eq!((status, &again), (200, done));
    for after in 0..frames.len() {
        let path = format!("{RESPONSES}/{id}?stream=true&starting_after={after}");
        let (status, text) = client.get(&path).await;
        assert_eq!(status, 200);
        assert_eq!(super::frames(text.as_str().unwrap()), frames[after + 1..], "after {after}");
    }
}

#[tokio::test]
async fn a_response_is_continued_without_its_old_instructions() {
    let world = World::start("").await;
    let client = world.openai();
    let first = json!({ "model": AGENT, "input": "One?", "instructions": "Be a pirate." });
    let (status, first) = client.post(RESPONSES, first).await;
    assert_eq!((status, output_text(&first).as_str()), (200, "echo: One?"));
    assert_eq!(first["instructions"], "Be a pirate.");
    let system = |world: &World| world.model.calls().pop().unwrap()["messages"][0].to_string();
    assert!(system(&world).contains("pirate"));
    let body =
        |text: &str| json!({ "model": AGENT, "input": text, "previous_response_id": first["id"] });
    let (status, second) = client.post(RESPONSES, body("Two?")).await;
    assert_eq!((status, output_text(&second).as_str()), (200, "echo: Two?"));
    assert!(!system(&world).contains("pirate"));
    let sent = world.model.calls().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("One?") && sent.contains("echo: One?"), "{sent}");
    let (_, sessions) = world.client().get("/v1/sessions").await;
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    // Continuing the same response again creates a branch.
    let (status, other) = client.post(RESPONSES, body("Three?")).await;
    assert_eq!((status, output_text(&other).as_str()), (200, "echo: Three?"));
    let sent = world.model.calls().pop().unwrap()["messages"].to_string();
    assert!(sent.contains("One?") && !sent.contains("Two?"), "{sent}");
    for unknown in ["resp_x", "resp_20250101t000000z_abcdefghijklmnop_1", ""] {
        let body = json!({ "model": AGENT, "input": "x", "previous_response_id": unknown });
        let (status, refused) = client.post(RESPONSES, body).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (400, &json!("previous_response_not_found")),
            "{unknown:?}"
        );
    }
}

#[tokio::test]
async fn function_calls_are_answered_with_the_next_request() {
    let world = World::start(NO_APPROVALS).await;
    let client = world.openai();
    let tool = json!({ "name": "weather", "args": { "city": "Oslo" }, "id": "call_1" });
    let steps = json!([{ "text": "Looking.", "tools": [tool] }, { "text": "Cold." }]);
    let tools = with(weather(), json!({ "type": "function" }));
    let tools = json!({ "tools": [tools] });
    let text = streamed(&client, RESPONSES, with(response_body(AGENT, steps), tools.clone())).await;
    let frames = frames(&text);
    assert_numbered(&frames, 0);
    let done = frames.last().unwrap()["response"].clone();
    let call = done["output"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("weather")));
    assert_eq!(call["arguments"], "{\"city\":\"Oslo\"}");
    let body = |input: Value| {
        let more = json!({ "model": AGENT, "previous_response_id": done["id"], "input": input });
        with(more, tools.clone())
    };
    let (status, refused) = client.post(RESPONSES, body(json!("and?"))).await;
    assert_eq!(status, 400, "{refused}");
    let result =
        json!({ "type": "function_call_output", "call_id": call["call_id"], "output": "3" });
    let (status, after) = client.post(RESPONSES, body(json!([result]))).await;
    assert_eq!((status, output_text(&after).as_str()), (200, "Cold."), "{after}");
    // Both parts of the turn can be read again separately.
    for (response, text) in [(&done, "Looking."), (&after, "Cold.")] {
        let (status, again) =
            client.get(&format!("{RESPONSES}/{}", response["id"].as_str().unwrap())).await;
        assert_eq!((status, output_text(&again).as_str()), (200, text));
        assert_eq!(&again, response);
    }
    let (status, _) = client.post(RESPONSES, body(json!([result]))).await;
    assert_eq!(status, 400, "the result is no longer expected");
}

#[tokio::test]
async fn a_background_response_keeps_its_numbers_after_a_crash() {
    let mut world = World::start("").await;
    let client = world.openai();
    let deltas: Vec<String> = (0..40).map(|n| format!("w{n} ")).collect();
    let go = world.home.path().join("go");
    let steps = json!([{ "deltas": deltas, "gap_ms": 5, "hold_until": go }]);
    let body = with(response_body(AGENT, steps), json!({ "background": true }));
    let (status, started) = client.post(RESPONSES, body).await;
    assert_eq!((status, &started["status"]), (200, &json!("in_progress")), "{started}");
    let id = started["id"].as_str().unwrap().to_owned();
    let path = format!("{RESPONSES}/{id}?stream=true");
    let mut response = client.unhurried(Method::GET, &path).send().await.unwrap();
    let mut text = String::new();
    // The events before the first text, and some text.
    while frames_so_far(&text).len() < 5 {
        let chunk = response.chunk().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    world.kill();
    std::fs::write(&go, "").unwrap();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let seen = frames_so_far(&text);
    assert_numbered(&seen, 0);
    world.restart();
    let client = world.openai();
    let after = seen.len() - 1;
    let (status, rest) = client.get(&format!("{path}&starting_after={after}")).await;
    assert_eq!(status, 200);
    let rest = frames(rest.as_str().unwrap());
    assert_numbered(&rest, seen.len() as u64);
    let done = rest.last().unwrap();
    assert_eq!(done["type"], "response.completed");
    let (_, all) = client.get(&path).await;
    let all = frames(all.as_str().unwrap());
    assert_eq!(all[..seen.len()], seen[..]);
    assert_eq!(all[seen.len()..], rest[..]);
    assert!(output_text(&done["response"]).ends_with(deltas.concat().as_str()));
}

/// The complete frames of a stream that may be truncated.
fn frames_so_far(text: &str) -> Vec<Value> {
    frames(&text[..text.rfind("\n\n").map_or(0, |end| end + 2)])
}

#[tokio::test]
async fn a_background_response_is_cancelled_and_deleted() {
    let world = World::start("").await;
    let client = world.openai();
    let steps = json!([{ "deltas": ["a", "b"], "hang": true }]);
    let body = with(response_body(AGENT, steps), json!({ "background": true }));
    let (_, started) = client.post(RESPONSES, body).await;
    let id = started["id"].as_str().unwrap();
    world.model.streaming(1).await;
    let path = format!("{RESPONSES}/{id}");
    let continued = json!({ "model": AGENT, "input": "x", "previous_response_id": id });
    assert_eq!(client.post(RESPONSES, continued).await.0, 400, "it has not ended");
    let (status, cancelled) = client.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")));
    world.model.streaming(0).await;
    let (_, again) = client.get(&path).await;
    assert_eq!(again["status"], "cancelled");
    let (status, items) = client.get(&format!("{path}/input_items")).await;
    assert_eq!((status, &items["object"]), (200, &json!("list")));
    assert_eq!(items["data"][0]["content"][0]["type"], "input_text");
    let deleted = client.request(Method::DELETE, &path).send().await.unwrap();
    assert_eq!(deleted.status(), 200);
    assert_eq!(client.get(&path).await.0, 404);
    assert_eq!(client.request(Method::DELETE, &path).send().await.unwrap().status(), 404);
    let (_, sessions) = world.client().get("/v1/sessions").await;
    assert_eq!(sessions, json!([]));
}

#[tokio::test]
async fn a_response_that_is_not_stored_is_not_found() {
    let world = World::start("").await;
    let client = world.openai();
    for model in [AGENT, PROXY] {
        let body = with(response_body(model, json!([{ "text": "x" }])), json!({ "store": false }));
        let (status, response) = client.post(RESPONSES, body).await;
        assert_eq!((status, &response["store"]), (200, &json!(false)));
        let id = response["id"].as_str().unwrap();
        assert_eq!(client.get(&format!("{RESPONSES}/{id}")).await.0, 404);
    }
    let body = with(response_body(AGENT, json!([])), json!({ "store": false, "background": true }));
    assert_eq!(client.post(RESPONSES, body).await.0, 400);
}

#[tokio::test]
async fn an_interrupted_response_fails() {
    let world = World::start("").await;
    let client = world.openai();
    let cut = json!([{ "deltas": ["a", "b"], "cut": true }]);
    for model in [PROXY, AGENT] {
        let response = post(&client, RESPONSES, &response_body(model, cut.clone())).await;
        assert!(response.status().is_server_error());
        assert_eq!(response.headers()["x-should-retry"], "false");
        let frames = failed_stream(&client, RESPONSES, response_body(model, cut.clone())).await;
        if let Some(failed) = frames.last() {
            assert_eq!(failed["type"], "response.failed", "{failed}");
            assert_eq!(failed["response"]["status"], "failed");
            assert!(failed["response"]["error"]["message"].is_string());
        }
    }
}

#[tokio::test]
async fn a_background_stream_continues_without_its_client() {
    let world = World::start("").await;
    let client = world.openai();
    let steps = json!([{ "deltas": ["a", "b", "c"], "gap_ms": 100 }]);
    let more = json!({ "background": true, "stream": true });
    let mut response = post(&client, RESPONSES, &with(response_body(AGENT, steps), more)).await;
    let first = response.chunk().await.unwrap().unwrap();
    let first = frames(std::str::from_utf8(&first).unwrap());
    let id = first[0]["response"]["id"].as_str().unwrap().to_owned();
    drop(response);
    until("the response is complete", async || {
        let (_, response) = client.get(&format!("{RESPONSES}/{id}")).await;
        response["status"] == "completed" && output_text(&response) == "abc"
    })
    .await;
    // The model call ends as well.
    tokio::time::timeout(WAIT_LIMIT, world.model.streaming(0)).await.unwrap();
}
