//! Tests of the coding tools, from the model's call to the changed file.

use serde_json::{Value, json};

use crate::client::{Event, text};
use crate::daemon::World;

fn call(name: &str, args: Value) -> Value {
    json!({ "tools": [{ "name": name, "args": args }] })
}

fn outputs(events: &[Event]) -> Vec<(String, bool, String)> {
    let completed = events.iter().filter(|event| event.kind() == "tool_call_completed");
    completed
        .map(|event| {
            let data = &event.json["data"];
            let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
            (text("tool"), data["ok"].as_bool().unwrap(), text("output"))
        })
        .collect()
}

#[tokio::test]
async fn a_change_is_shown_as_a_diff_before_it_is_made() {
    let world = World::start("[approval]\nkinds = [\"write\"]\n[verify]\nauto = false\n").await;
    let client = world.client();
    let file = world.workspace().join("poem.txt");
    std::fs::write(&file, "roses are red\nviolets are red\n").unwrap();
    let id = client.create(world.workspace()).await;
    let edit = json!({ "path": "poem.txt", "old": "violets are red", "new": "violets are blue" });
    client.say(&id, json!([call("edit_file", edit), { "text": "mended" }])).await;
    let events = client.until(&id, |event| event.kind() == "approval_requested").await;
    let asked = &events[events.len() - 1].json["data"];
    let preview = asked["preview"].as_str().unwrap();
    assert!(preview.contains("-violets are red\n+violets are blue\n"), "{preview}");
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("violets are red\n"));
    client.approve(&id, asked["tool_call_id"].as_str().unwrap(), "approve").await;
    assert_eq!(text(&client.until_over(&id).await), "mended");
    assert!(std::fs::read_to_string(&file).unwrap().ends_with("violets are blue\n"));
}

#[tokio::test]
async fn a_model_finds_its_way_and_changes_files() {
    let world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let patch =
        "*** Begin Patch\n*** Update File: src/a.txt\n@@\n one\n-two\n+zwei\n*** End Patch\n";
    client
        .say(
            &id,
            json!([
                call("write_file", json!({ "path": "src/a.txt", "content": "one\ntwo\n" })),
                call("repo_tree", json!({})),
                call("search", json!({ "query": "two" })),
                call("apply_patch", json!({ "patch": patch })),
                call("read_file", json!({ "path": "src/a.txt" })),
                call("read_file", json!({ "path": "../quintet.toml" })),
                { "text": "done" },
            ]),
        )
        .await;
    let outputs = outputs(&client.until_over(&id).await);
    let said: Vec<(&str, bool)> =
        outputs.iter().map(|(tool, ok, _)| (tool.as_str(), *ok)).collect();
    let names = ["write_file", "repo_tree", "search", "apply_patch", "read_file"];
    assert_eq!(said[..5], names.map(|name| (name, true)));
    assert_eq!(said[5], ("read_file", false));
    assert_eq!(outputs[1].2.trim(), "src/a.txt");
    assert!(outputs[2].2.contains("src/a.txt:2:two"), "{}", outputs[2].2);
    assert!(outputs[4].2.contains("zwei"), "{}", outputs[4].2);
    assert_eq!(
        std::fs::read_to_string(world.workspace().join("src/a.txt")).unwrap(),
        "one\nzwei\n"
    );
}
