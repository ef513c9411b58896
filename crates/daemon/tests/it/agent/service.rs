//! The addresses of the protocol, and health checks.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;
use crate::daemon::{World, quintet, until};

#[tokio::test]
async fn unreadable_storage_is_reported_by_health_checks() {
    let world = World::start("").await;
    let id = world.socket().await.create(world.workspace()).await;
    let data = world.home.path().join("data");
    for name in ["quintet.db", "quintet.db-wal"] {
        let file = data.join(name);
        let length = fs::metadata(&file).unwrap().len();
        fs::write(&file, vec![0xAA; usize::try_from(length).unwrap()]).unwrap();
    }
    // A write makes readers check the file again; its result does not matter here.
    let params = json!({ "workingDirectory": world.workspace() });
    let _ = world.socket().await.ask("session.create", params).await;
    until("health is 503", async || world.health().get("/health").await.0 == 503).await;
    let (_, body) = world.health().get("/health").await;
    assert_eq!(body["status"], "unhealthy", "{body}");
    assert!(body["error"].is_string(), "{body}");
    let (_, metrics) = world.health().get("/metrics").await;
    assert!(metrics.as_str().unwrap().contains("quintet_up 0"), "{metrics}");
    let answer = world.socket().await.ask("session.get", json!({ "sessionId": id })).await;
    // A loaded session is still shown; any other cannot be read.
    assert!(answer.is_ok() || answer.unwrap_err()["code"] == -32603);
}

#[tokio::test]
async fn health_checks_follow_whether_storage_is_writable() {
    let world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    let seen = async || {
        let (agent, _) = world.health().get("/health").await;
        let (harness, _) = world.client().get("/healthz").await;
        let (desktop, body) = world.desktop().client.get("/health").await;
        assert_eq!(body["healthy"], desktop == 200);
        let (computer, _) = Client::new(world.windie()).get("/health").await;
        [agent, harness, desktop, computer]
    };
    assert_eq!(seen().await, [200; 4]);
    // The same as a full disk, for this daemon alone.
    world.limit_files(Some(512));
    let refused = socket.ask("agent.message", json!({ "sessionId": id, "content": "hi" })).await;
    let refused = refused.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("storage"), "{refused}");
    assert_eq!(refused["code"], -32603);
    assert_eq!(seen().await, [503; 4], "reported at once: {refused}");
    let (_, body) = world.health().get("/health").await;
    assert!(body["error"].as_str().unwrap().contains("storage"), "{body}");
    world.limit_files(None);
    until("health is 200", async || seen().await == [200; 4]).await;
    // The same without any write.
    world.limit_files(Some(512));
    until("health is 503", async || seen().await == [503; 4]).await;
    world.limit_files(None);
    until("health is 200", async || seen().await == [200; 4]).await;
    socket.turn(&id, json!([{ "text": "one" }])).await;
    assert_eq!(world.integrity(), "ok");
}

/// The number of stored blobs.
fn blobs(world: &World) -> usize {
    let folder = world.home.path().join("data/blobs");
    let shards = fs::read_dir(folder).unwrap().map(|shard| shard.unwrap().path());
    let shards = shards.filter(|shard| shard.is_dir() && !shard.ends_with("tmp"));
    shards.map(|shard| fs::read_dir(shard).unwrap().count()).sum()
}

#[tokio::test]
async fn blobs_of_a_deleted_session_are_removed_at_a_restart() {
    let mut world = World::start("").await;
    let mut socket = world.socket().await;
    let id = socket.create(world.workspace()).await;
    for (name, data) in [("a.txt", "YQ=="), ("b.txt", "Yg==")] {
        let file = json!([{ "data": data, "mimeType": "text/plain", "fileName": name }]);
        let message = json!({ "sessionId": id, "content": "look", "attachments": file });
        socket.ask("agent.message", message).await.unwrap();
        socket.until_notified("agent.turn_complete").await;
    }
    let events = socket.events(&id, 0).await;
    let second = events.iter().rfind(|event| event["type"] == "file.attached").unwrap();
    let before = second["sequence"].as_u64().unwrap() - 1;
    let fork = json!({ "sessionId": id, "eventId": before });
    let fork = socket.ask("session.fork", fork).await.unwrap()["newSessionId"].clone();
    assert_eq!(blobs(&world), 2);
    socket.ask("session.delete", json!({ "sessionId": id })).await.unwrap();
    world.kill();
    world.restart();
    assert_eq!(blobs(&world), 1, "only the fork's file is left");
    let mut socket = world.socket().await;
    socket.ask("session.delete", json!({ "sessionId": fork })).await.unwrap();
    world.kill();
    world.restart();
    assert_eq!(blobs(&world), 0);
}

#[test]
fn a_development_daemon_uses_other_ports() {
    // Used by this test or by another program: either way the daemon must report the conflict.
    let _taken: Vec<_> = [8082, 8083].map(|port| TcpListener::bind(("127.0.0.1", port))).into();
    let home = TempDir::new().unwrap();
    let mut child = quintet(&["serve", "--dev", "--data-dir", home.path().to_str().unwrap()])
        .args(["--listen", "harness=127.0.0.1:0", "--set", "listen.jarvis=off"])
        .args(["--set", "listen.terminal=off", "--set", "listen.windie=off"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let ready: Value = serde_json::from_str(&line).expect(&line);
    let listeners = &ready["listeners"];
    assert_eq!((&listeners["agent"], &listeners["agent_health"]), (&Value::Null, &Value::Null));
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    for listener in ["listen.agent = 127.0.0.1:8082", "listen.agent_health = 127.0.0.1:8083"] {
        assert!(log.contains(listener), "{listener} is not in {log}");
    }
}
