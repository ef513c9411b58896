//! Tests of `quintet sessions find`, with and without a running daemon.

use serde_json::{Value, json};

use crate::daemon::{World, quintet, until};

/// Runs the command; returns its output, or its error.
fn find(world: &World, arguments: &[&str]) -> Result<String, String> {
    let config = world.home.path().join("quintet.toml");
    let mut all = vec!["sessions", "find", "--config", config.to_str().unwrap()];
    all.extend(arguments);
    let output = quintet(&all).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

fn hits(world: &World, words: &str) -> Vec<Value> {
    let printed = find(world, &[words, "--json"]).unwrap();
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(document["search"], "words");
    document["hits"].as_array().unwrap().clone()
}

#[tokio::test]
async fn sessions_are_found_with_and_without_a_daemon() {
    let mut world = World::start("").await;
    let client = world.client();
    let one = client.create(world.workspace()).await;
    client.say(&one, json!([{ "text": "The heron\neats seventeen frogs." }])).await;
    client.until_over(&one).await;
    let two = client.create(world.workspace()).await;
    let reads = json!({ "name": "shell", "args": { "command": "echo pelican" } });
    client.say(&two, json!([{ "tools": [reads] }, { "text": "done" }])).await;
    client.until_over(&two).await;
    until("the answer is found", async || {
        hits(&world, "frogs").iter().any(|hit| hit["role"] == "assistant")
    })
    .await;
    let frogs = hits(&world, "FROG");
    let answer = frogs.iter().find(|hit| hit["role"] == "assistant").unwrap();
    assert_eq!(
        (&answer["session"], &answer["excerpt"]),
        (&json!(one), &json!("eats seventeen frogs."))
    );
    assert_eq!(answer["matches"], json!([[15, 20]]));
    assert_eq!(answer["workspace"], world.workspace().to_str().unwrap());
    until("the tool's output is found", async || {
        hits(&world, "pelican").iter().any(|hit| hit["role"] == "tool")
    })
    .await;
    for words in ["\"", "AND", "*", "frogs*", "🎉", "NEAR("] {
        find(&world, &[words]).unwrap();
    }
    let printed = find(&world, &["seventeen", "frogs", "--limit", "1"]).unwrap();
    assert!(printed.starts_with(&one) && printed.contains("seventeen"), "{printed}");
    assert_eq!(printed.lines().count(), 2, "{printed}");
    // Neither a crash nor the loss of the index loses anything.
    client.say(&two, json!([{ "text": "A kingfisher at last." }])).await;
    client.until_over(&two).await;
    world.kill();
    assert!(hits(&world, "kingfisher").iter().any(|hit| hit["role"] == "assistant"));
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(world.data_dir().join(format!("search.db{end}")));
    }
    assert_eq!(hits(&world, "pelican kingfisher frogs").len(), 5);
    // A daemon indexes older sessions.
    std::fs::write(world.data_dir().join("search.db"), "not a database, but a long text").unwrap();
    world.restart();
    until("old sessions are found", async || {
        find(&world, &["kingfisher"]).is_ok_and(|printed| printed.contains("kingfisher at last"))
    })
    .await;
}

#[tokio::test]
async fn invalid_searches_are_reported() {
    let mut world = World::start("").await;
    let empty = find(&world, &[" "]).unwrap_err();
    assert!(empty.contains("bad query: it is empty"), "{empty}");
    let none = find(&world, &["--limit", "0", "x"]).unwrap_err();
    assert!(none.contains("1..=100"), "{none}");
    world.terminate();
    assert_eq!(find(&world, &["zeppelin"]).unwrap(), "nothing found\n");
    let nowhere = world.home.path().join("nowhere");
    let missing = find(&world, &["--data-dir", nowhere.to_str().unwrap(), "x"]).unwrap_err();
    assert!(missing.contains("there are no sessions"), "{missing}");
}
