//! Tests of memory: written and searched by models, edited by people.

use serde_json::{Value, json};

use crate::client::Event;
use crate::daemon::World;

fn call(name: &str, args: Value) -> Value {
    json!({ "tools": [{ "name": name, "args": args }] })
}

fn outputs(events: &[Event]) -> Vec<String> {
    let completed = events.iter().filter(|event| event.kind() == "tool_call_completed");
    completed.map(|event| event.json["data"]["output"].as_str().unwrap().to_owned()).collect()
}

/// The names of the tools that the model was last offered.
fn offered(world: &World) -> Vec<String> {
    let calls = world.model.calls();
    let tools = calls[calls.len() - 1]["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn notes_are_written_and_edits_of_people_are_found() {
    let world = World::start("[verify]\nauto = true\n").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let search = json!({ "query": "favourite drink" });
    let script = json!([
        call("memory_write", json!({ "content": "favourite drink: tea", "target": "long_term" })),
        call("memory_search", search.clone()),
        { "text": "noted" },
    ]);
    client.say(&id, script).await;
    // No approval is needed, although writing files needs one: these are the agent's own notes.
    let events = client.until_over(&id).await;
    let written = outputs(&events);
    assert_eq!(written[0], "added to memory/MEMORY.md, lines 1-1");
    assert!(written[1].contains("favourite drink: tea"), "{written:?}");
    let memory = world.workspace().join("memory/MEMORY.md");
    assert_eq!(std::fs::read_to_string(&memory).unwrap(), "favourite drink: tea\n");
    std::fs::write(&memory, "# People\n\nfavourite drink: cocoa\n").unwrap();
    let script = json!([
        call("memory_search", search),
        call("memory_get", json!({ "path": "memory/MEMORY.md", "start_line": 3 })),
        { "text": "found" },
    ]);
    let other = client.create(world.workspace()).await;
    client.say(&other, script).await;
    let found = outputs(&client.until_over(&other).await);
    assert!(found[0].starts_with("memory/MEMORY.md, lines 1-3 (score "), "{found:?}");
    assert!(found[0].contains("cocoa") && !found[0].contains("tea"), "{found:?}");
    assert!(found[1].starts_with("favourite drink: cocoa\n"), "{found:?}");
}

#[tokio::test]
async fn notes_are_in_the_system_prompt() {
    let world = World::start("").await;
    let client = world.client();
    std::fs::write(world.workspace().join("USER.md"), "Ada, an engineer.\n").unwrap();
    std::fs::create_dir(world.workspace().join("memory")).unwrap();
    std::fs::write(world.workspace().join("memory/MEMORY.md"), "Ada likes tea.\n").unwrap();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "one" }])).await;
    client.until_over(&id).await;
    let (_, shown) = client.get(&format!("/v1/sessions/{id}/context")).await;
    let system = shown["system"].as_str().unwrap();
    assert!(system.contains("USER.md:\nAda, an engineer.\n"), "{system}");
    assert!(system.contains("memory/MEMORY.md:\nAda likes tea.\n"), "{system}");
    let calls = world.model.calls();
    assert_eq!(calls[calls.len() - 1]["messages"][0]["content"], *system);
    let write = json!({ "content": "Ada moved to Bern.", "target": "long_term" });
    client.say(&id, json!([call("memory_write", write), { "text": "two" }])).await;
    client.until_over(&id).await;
    client.say(&id, json!([{ "text": "three" }])).await;
    client.until_over(&id).await;
    let (_, shown) = client.get(&format!("/v1/sessions/{id}/context")).await;
    let update = shown["updates"].as_array().unwrap().last().unwrap()["text"].as_str().unwrap();
    assert!(
        update.contains("memory/MEMORY.md:\nAda likes tea.\n\nAda moved to Bern.\n"),
        "{update}"
    );
}

#[tokio::test]
async fn facts_are_saved_with_a_compaction() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let summary = "They said hello.\n\nREMEMBER:\n- Ada prefers tabs";
    client.say(&id, json!([{ "text": "hello" }, { "text": summary }])).await;
    client.until_over(&id).await;
    let (status, _) = client.post(&format!("/v1/sessions/{id}/compact"), json!({})).await;
    assert!(status < 300);
    let events = client.until(&id, |event| event.kind() == "memory_saved").await;
    let path = events[events.len() - 1].json["data"]["path"].as_str().unwrap().to_owned();
    let notes = std::fs::read_to_string(world.workspace().join(path)).unwrap();
    assert_eq!(notes, "- Ada prefers tabs\n");
    let compacted = events.iter().find(|event| event.kind() == "context_compacted").unwrap();
    assert_eq!(compacted.json["data"]["summary"], "They said hello.");
}

#[tokio::test]
async fn memory_can_be_off() {
    let plain = "[approval]\nkinds = []\n[verify]\nauto = false\n";
    let world = World::start(&format!("{plain}[memory]\nenabled = false\n")).await;
    let client = world.client();
    std::fs::write(world.workspace().join("USER.md"), "Ada\n").unwrap();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "one" }])).await;
    client.until_over(&id).await;
    assert!(offered(&world).iter().all(|name| !name.starts_with("memory_")));
    let (_, shown) = client.get(&format!("/v1/sessions/{id}/context")).await;
    assert!(!shown["system"].as_str().unwrap().contains("USER.md:\n"), "{shown}");
}
