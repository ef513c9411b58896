//! Tests that changes of a command are recorded and can be reverted, even if the daemon was killed
//! meanwhile.

use serde_json::json;

use crate::daemon::{World, appears};

const SETTINGS: &str =
    "[approval]\nkinds = []\n[verify]\nauto = false\n[recovery]\npolicy = \"leave\"\n";

#[tokio::test]
async fn a_command_interrupted_by_a_kill_is_reverted() {
    let mut world = World::start(SETTINGS).await;
    let client = world.client();
    let file = |name: &str| world.workspace().join(name);
    let large = vec![b'x'; 9 << 20];
    std::fs::write(file("a.txt"), "one\n").unwrap();
    std::fs::write(file("large"), &large).unwrap();
    std::fs::create_dir(file("folder")).unwrap();
    std::fs::write(file("folder/b.txt"), "two\n").unwrap();
    let id = client.create(world.workspace()).await;
    let command = "echo more >> a.txt; echo y > large; rm -r folder; echo file > folder; mkdir -p new/x; \
                   echo o > new/x/y; : > ready; sleep 600";
    let tool = json!({ "name": "shell", "args": { "command": command } });
    let turn = client.say(&id, json!([{ "tools": [tool] }, { "text": "done" }])).await;
    appears(&file("ready")).await;
    world.kill();
    world.restart();
    let client = world.client();
    client.until_over(&id).await;
    let path = format!("/v1/sessions/{id}/turns/{turn}");
    let (_, changes) = client.get(&format!("{path}/changes")).await;
    assert_eq!(changes["unrecorded"], json!([]), "{changes}");
    let names = changes["files"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|file| file["path"].as_str().unwrap()).collect();
    let expected = ["a.txt", "folder", "folder/b.txt", "large", "new", "new/x", "new/x/y", "ready"];
    assert_eq!(names, expected);
    let diff = changes["diff"].as_str().unwrap();
    assert!(diff.contains("Large files a/large and b/large differ"), "{diff}");
    let (status, done) = client.post(&format!("{path}/revert"), json!({})).await;
    assert_eq!(status, 200, "{done}");
    let file = |name: &str| world.workspace().join(name);
    assert_eq!(std::fs::read_to_string(file("a.txt")).unwrap(), "one\n");
    assert_eq!(std::fs::read_to_string(file("folder/b.txt")).unwrap(), "two\n");
    assert!(std::fs::read(file("large")).unwrap() == large);
    assert!(!file("new").exists() && !file("ready").exists());
}

#[tokio::test]
async fn two_commands_of_a_turn_are_reverted_together() {
    let world = World::start("").await;
    let client = world.client();
    let file = |name: &str| world.workspace().join(name);
    std::fs::write(file("a"), "one\n").unwrap();
    let id = client.create(world.workspace()).await;
    let shell =
        |command: &str| json!({ "tools": [{ "name": "shell", "args": { "command": command } }] });
    let script = json!([
        shell("echo two > a; mkdir new"), shell("echo three > a; mv a new/a; mkdir a"), { "text": "done" },
    ]);
    let turn = client.say(&id, script).await;
    client.until_over(&id).await;
    let path = format!("/v1/sessions/{id}/turns/{turn}");
    std::fs::write(file("new/a"), "mine\n").unwrap();
    let (status, refused) = client.post(&format!("{path}/revert"), json!({})).await;
    assert_eq!(status, 409);
    assert!(refused["error"].as_str().unwrap().contains("new/a was changed since"), "{refused}");
    std::fs::write(file("new/a"), "three\n").unwrap();
    let (status, done) = client.post(&format!("{path}/revert"), json!({})).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(std::fs::read_to_string(file("a")).unwrap(), "one\n");
    assert!(!file("new").exists());
}

#[tokio::test]
async fn a_command_is_reverted_with_a_relative_data_directory() {
    let world = World::start_relative(SETTINGS).await;
    let client = world.client();
    let file = world.workspace().join("a");
    std::fs::write(&file, "one\n").unwrap();
    let id = client.create(world.workspace()).await;
    let tool = json!({ "name": "shell", "args": { "command": "echo two > a" } });
    let turn = client.say(&id, json!([{ "tools": [tool] }, { "text": "done" }])).await;
    client.until_over(&id).await;
    let path = format!("/v1/sessions/{id}/turns/{turn}");
    let (_, changes) = client.get(&format!("{path}/changes")).await;
    assert_eq!(changes["unrecorded"], json!([]), "{changes}");
    assert_eq!(changes["files"][0]["path"], "a", "{changes}");
    let (status, done) = client.post(&format!("{path}/revert"), json!({})).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
}

#[tokio::test]
async fn a_revert_is_previewed_and_reapplied() {
    let world = World::start(SETTINGS).await;
    let client = world.client();
    let file = |name: &str| world.workspace().join(name);
    std::fs::write(file("a"), "one\n").unwrap();
    let id = client.create(world.workspace()).await;
    let command = "echo two > a; seq 300 | xargs touch";
    let tool = json!({ "name": "shell", "args": { "command": command } });
    let turn = client.say(&id, json!([{ "tools": [tool] }, { "text": "done" }])).await;
    client.until_over(&id).await;
    let path = format!("/v1/sessions/{id}/turns/{turn}");
    std::fs::write(file("a"), "mine\n").unwrap();
    let (_, tried) = client.get(&format!("{path}/revert")).await;
    let reason = "nothing was changed: a was changed since";
    assert_eq!(tried, json!({ "ok": false, "reason": reason }));
    std::fs::write(file("a"), "two\n").unwrap();
    let (_, tried) = client.get(&format!("{path}/revert")).await;
    assert_eq!(tried, json!({ "ok": true, "reason": null }));
    assert_eq!(std::fs::read_to_string(file("a")).unwrap(), "two\n");
    let (status, done) = client.post(&format!("{path}/revert"), json!({})).await;
    assert_eq!((status, &done["more"]), (200, &json!(201)), "{done}");
    assert_eq!(std::fs::read_to_string(file("a")).unwrap(), "one\n");
    assert_eq!(std::fs::read_dir(world.workspace()).unwrap().count(), 1);
    let (status, done) = client.post(&format!("{path}/reapply"), json!({})).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(std::fs::read_to_string(file("a")).unwrap(), "two\n");
    assert_eq!(std::fs::read_dir(world.workspace()).unwrap().count(), 301);
}
