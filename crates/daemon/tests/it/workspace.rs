//! Tests of workspaces: the description for models, rules, reviews and reverting.

use serde_json::{Value, json};

use crate::client::{Client, Event, text};
use crate::daemon::World;

fn call(name: &str, args: Value) -> Value {
    json!({ "tools": [{ "name": name, "args": args }] })
}

/// The system prompt of the last model call.
fn system(world: &World) -> String {
    let calls = world.model.calls();
    calls[calls.len() - 1]["messages"][0]["content"].as_str().unwrap().to_owned()
}

async fn pending_approval(client: &Client, session: &str) -> Value {
    let events = client.until(session, |event| event.kind() == "approval_requested").await;
    events[events.len() - 1].json["data"].clone()
}

fn of_kind<'a>(events: &'a [Event], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event.kind() == kind).map(|event| &event.json["data"]).collect()
}

#[tokio::test]
async fn a_model_receives_the_workspace_and_its_changes() {
    let world = World::start("").await;
    let client = world.client();
    std::fs::write(world.workspace().join("AGENTS.md"), "Speak of the moon.\n").unwrap();
    std::fs::write(world.workspace().join("lib.rs"), "pub fn shine() {}\n").unwrap();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "one" }])).await;
    let events = client.until_over(&id).await;
    let first = system(&world);
    assert!(first.contains("Workspace context:\nAGENTS.md:\n"), "{first}");
    assert!(first.contains("Speak of the moon."), "{first}");
    assert!(first.contains("REPO TREE:\n") && first.contains("shine"), "{first}");
    let (status, shown) = client.get(&format!("/v1/sessions/{id}/context")).await;
    assert_eq!((status, shown["system"].as_str()), (200, Some(first.as_str())));
    let weight = |part: &str| shown["tokens"][part].as_u64().unwrap();
    assert_eq!(weight("system"), (first.len() as u64).div_ceil(4), "an estimate, marked as such");
    assert_eq!(shown["tokens"]["estimated"], true);
    assert_eq!(weight("total"), weight("system") + weight("tools") + weight("messages"));
    assert_eq!(of_kind(&events, "context_gathered").len(), 1);
    std::fs::write(world.workspace().join("AGENTS.md"), "Speak of the sun.\n").unwrap();
    client.say(&id, json!([{ "text": "two" }])).await;
    client.until_over(&id).await;
    assert_eq!(system(&world), first, "sent context stays unchanged, for the provider's cache");
    let (_, shown) = client.get(&format!("/v1/sessions/{id}/context")).await;
    let told = shown["updates"][0]["text"].as_str().unwrap();
    assert!(told.starts_with("Workspace context, changed since:\nAGENTS.md:\n"), "{told}");
    let calls = world.model.calls();
    let sent = calls[calls.len() - 1]["messages"].to_string();
    assert!(sent.contains("Speak of the sun."), "{sent}");
    client.say(&id, json!([{ "text": "three" }])).await;
    client.until_over(&id).await;
    let (_, shown) = client.get(&format!("/v1/sessions/{id}/context")).await;
    assert_eq!(shown["updates"].as_array().unwrap().len(), 1, "there are no further updates");
}

#[tokio::test]
async fn a_turn_is_shown_as_one_diff_and_reverted() {
    let world = World::start("").await;
    let client = world.client();
    let file = |name: &str| world.workspace().join(name);
    std::fs::write(file("a.txt"), "one\n").unwrap();
    std::fs::write(file("gone.txt"), "kept\n").unwrap();
    let id = client.create(world.workspace()).await;
    let script = json!([
        call("edit_file", json!({ "path": "a.txt", "old": "one", "new": "two" })),
        call("shell", json!({ "command": "echo three >> a.txt; rm gone.txt; echo new > b.txt" })),
        { "text": "done" },
    ]);
    let turn = client.say(&id, script).await;
    client.until_over(&id).await;
    let path = format!("/v1/sessions/{id}/turns/{turn}");
    let (status, changes) = client.get(&format!("{path}/changes")).await;
    let diff = changes["diff"].as_str().unwrap();
    assert_eq!(status, 200);
    assert!(diff.contains("-one\n+two\n+three\n"), "{diff}");
    let files: Vec<_> = changes["files"].as_array().unwrap().iter().collect();
    let names: Vec<_> = files.iter().map(|file| file["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.txt", "b.txt", "gone.txt"]);
    std::fs::write(file("b.txt"), "by hand\n").unwrap();
    let (status, refused) = client.post(&format!("{path}/revert"), json!({})).await;
    assert_eq!(status, 409);
    assert!(refused["error"].as_str().unwrap().contains("b.txt"), "{refused}");
    assert_eq!(std::fs::read_to_string(file("a.txt")).unwrap(), "two\nthree\n");
    std::fs::write(file("b.txt"), "new\n").unwrap();
    let (status, done) = client.post(&format!("{path}/revert"), json!({})).await;
    assert_eq!((status, &done["files"]), (200, &json!(names)));
    assert_eq!(std::fs::read_to_string(file("a.txt")).unwrap(), "one\n");
    assert_eq!(std::fs::read_to_string(file("gone.txt")).unwrap(), "kept\n");
    assert!(!file("b.txt").exists());
    let (status, _) = client.post(&format!("{path}/revert"), json!({})).await;
    assert_eq!(status, 409);
    assert_eq!(client.session(&id).await["turns"][0]["reverted"], true);
}

#[tokio::test]
async fn a_revert_survives_a_restart() {
    let mut world = World::start("").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let write = json!({ "path": "a.txt", "content": "made\n" });
    let turn = client.say(&id, json!([call("write_file", write), { "text": "done" }])).await;
    client.until_over(&id).await;
    world.kill();
    world.restart();
    let client = world.client();
    let (status, _) =
        client.post(&format!("/v1/sessions/{id}/turns/{turn}/revert"), json!({})).await;
    assert_eq!(status, 200);
    assert!(!world.workspace().join("a.txt").exists());
}

#[tokio::test]
async fn rules_allow_ask_and_refuse() {
    let world = World::start(
        "[approval]\nkinds = [\"write\", \"exec\"]\n[verify]\nauto = false\n\
         [rules.secrets]\npath = \"**/.env\"\naction = \"refuse\"\nreason = \"secrets\"\n\
         [rules.docs]\nkind = \"write\"\npath = \"docs/**\"\naction = \"allow\"\n\
         [rules.echo]\ncommand = \"echo *\"\naction = \"allow\"\n",
    )
    .await;
    let client = world.client();
    std::fs::write(world.workspace().join(".env"), "KEY=hush\n").unwrap();
    let id = client.create(world.workspace()).await;
    let script = json!([
        call("read_file", json!({ "path": ".env" })),
        call("write_file", json!({ "path": "docs/a.md", "content": "hi" })),
        call("shell", json!({ "command": "echo fine" })),
        call("shell", json!({ "command": "echo fine; cat .env" })),
        { "text": "done" },
    ]);
    client.say(&id, script).await;
    let question = pending_approval(&client, &id).await;
    assert_eq!(question["input"]["command"], "echo fine; cat .env");
    client.approve(&id, question["tool_call_id"].as_str().unwrap(), "deny").await;
    let events = client.until_over(&id).await;
    let outputs: Vec<_> = of_kind(&events, "tool_call_completed");
    assert_eq!(outputs[0]["error"], "refused by policy: secrets");
    assert!(!outputs.iter().any(|output| output.to_string().contains("hush")));
    assert_eq!((&outputs[1]["ok"], &outputs[2]["ok"]), (&json!(true), &json!(true)));
    assert_eq!(of_kind(&events, "approval_requested").len(), 1);
}

#[tokio::test]
async fn an_answer_is_remembered_for_similar_calls() {
    let world = World::start("[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n").await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let run = |command: &str| call("shell", json!({ "command": command }));
    client
        .say(&id, json!([run("echo one"), run("echo one more"), run("ls"), { "text": "x" }]))
        .await;
    let question = pending_approval(&client, &id).await;
    assert!(question["similar"].as_str().unwrap().contains("echo"), "{question}");
    let answer = json!({ "tool_call_id": question["tool_call_id"], "apply_to_similar": true });
    assert_eq!(client.post(&format!("/v1/sessions/{id}/approve"), answer).await.0, 200);
    let over = |event: &Event| {
        event.kind() == "approval_requested" && event.json["data"]["input"]["command"] == "ls"
    };
    let events = client.until(&id, over).await;
    let granted = of_kind(&events, "approval_granted");
    assert_eq!((&granted[0]["by"], &granted[1]["by"]), (&json!("client"), &json!("remembered")));
}

#[tokio::test]
async fn a_change_is_reviewed_before_it_is_made() {
    let config = "[approval]\nkinds = []\n[verify]\nauto = false\n[patch_review]\nmode = ";
    let write = json!({ "path": "a.txt", "content": "hi\n" });
    let world = World::start(&format!("{config}\"request\"\n")).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([call("write_file", write), { "text": "written" }])).await;
    let question = pending_approval(&client, &id).await;
    assert!(question["preview"].as_str().unwrap().contains("+hi"), "{question}");
    client.approve(&id, question["tool_call_id"].as_str().unwrap(), "approve").await;
    assert_eq!(text(&client.until_over(&id).await), "written");
}

#[tokio::test]
async fn a_change_is_reviewed_by_the_model() {
    let config =
        "[approval]\nkinds = []\n[verify]\nauto = false\n[patch_review]\nmode = \"auto\"\n";
    let write = json!({ "path": "a.txt", "content": "hi\n" });
    for (verdict, approved) in [("REJECT: it is rude", false), ("APPROVE: as asked", true)] {
        let world = World::start(config).await;
        let client = world.client();
        let id = client.create(world.workspace()).await;
        // The same text answers the review and then ends the turn.
        client.say(&id, json!([call("write_file", write.clone()), { "text": verdict }])).await;
        let events = client.until_over(&id).await;
        let shown = of_kind(&events, "patch_review_requested");
        assert!(shown[0]["preview"].as_str().unwrap().contains("+hi"), "{shown:?}");
        let reviewed = of_kind(&events, "patch_reviewed");
        assert_eq!((reviewed.len(), &reviewed[0]["approved"]), (1, &json!(approved)));
        assert!(of_kind(&events, "approval_requested").is_empty());
        let done = of_kind(&events, "tool_call_completed");
        assert_eq!(done[0]["ok"], approved, "{done:?}");
        assert_eq!(world.workspace().join("a.txt").exists(), approved);
        let calls = world.model.calls();
        let pending_approval =
            calls.iter().filter(|call| call.to_string().contains("APPROVE or REJECT"));
        assert_eq!(pending_approval.count(), 1);
    }
}
