//! Users who pay for models themselves.

use std::path::Path;

use quintet_testkit::replay_server::{CannedReply, ReplayServer};
use serde_json::{Value, json};

use crate::computer::{Computer, first, text};
use crate::daemon::World;

const ANNS: &str = "sk-anns-very-own-key-0001";
const BOBS: &str = "sk-bobs-very-own-key-0002";
const NEXT: &str = "sk-anns-other-own-key-0003";
const OURS: &str = "sk-the-daemons-own-key-0004";

const ANSWER: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";

fn config(url: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!("api_key = \"{key}\"\n")).unwrap_or_default();
    format!(
        "[approval]\nkinds = []\n[verify]\nauto = false\n[providers.openai]\n\
         api = \"openai-chat\"\nbase_url = \"{url}/v1\"\n{key}"
    )
}

async fn user(world: &World, name: &str, key: Option<&str>) -> Computer {
    let mut computer = Computer::connect(world.windie(), name, Value::Null).await;
    let model = json!({ "model_provider": "openai", "selected_model_id": "gpt-5.4" });
    computer.send("update-settings", model).await;
    computer.until("settings-updated").await;
    if let Some(key) = key {
        set(&mut computer, json!({ "enabled": true, "api_key": key })).await;
    }
    computer
}

async fn set(computer: &mut Computer, key: Value) {
    let keys = json!({ "provider_api_keys": { "openai": key } });
    computer.send("update-settings", keys).await;
    computer.until("settings-updated").await;
}

async fn ask(computer: &mut Computer) -> Vec<Value> {
    ask_in(computer, "c").await
}

/// Asks in a conversation, whose frames are told apart from those of others that are told again.
pub(crate) async fn ask_in(computer: &mut Computer, conversation: &str) -> Vec<Value> {
    computer.send("query", json!({ "text": "hello", "conversation_ref": conversation })).await;
    let mut frames = Vec::new();
    loop {
        // Whatever its number: after a restart a computer's messages have the names of older ones.
        let frame = computer.raw().await.expect("an answer");
        if frame["conversation_ref"] == conversation {
            assert_ne!(frame["type"], "error", "{frame}");
            frames.push(frame);
            if frames[frames.len() - 1]["type"] == "streaming-complete" {
                return frames;
            }
        }
    }
}

/// What the last question was paid with.
fn paid(server: &ReplayServer) -> String {
    let asked = server.asked();
    let asked = asked.iter().rev().find(|asked| asked.method == "POST").unwrap();
    asked.headers["authorization"].clone()
}

#[tokio::test]
async fn everybody_pays_with_what_he_has() {
    let server = ReplayServer::start(CannedReply::stream(ANSWER)).await.unwrap();
    let world = World::start(&config(&server.url(), Some(OURS))).await;
    let mut ann = user(&world, "ann", Some(ANNS)).await;
    let mut bob = user(&world, "bob", Some(BOBS)).await;
    let mut eve = user(&world, "eve", None).await;
    assert_eq!(text(&ask(&mut ann).await), "hi");
    assert_eq!(paid(&server), format!("Bearer {ANNS}"));
    ask(&mut bob).await;
    assert_eq!(paid(&server), format!("Bearer {BOBS}"));
    ask(&mut eve).await;
    assert_eq!(paid(&server), format!("Bearer {OURS}"));
    // Another key counts from then on, and so does having none.
    set(&mut ann, json!({ "api_key": NEXT })).await;
    ask(&mut ann).await;
    assert_eq!(paid(&server), format!("Bearer {NEXT}"));
    set(&mut ann, json!({ "enabled": false })).await;
    ask(&mut ann).await;
    assert_eq!(paid(&server), format!("Bearer {OURS}"));
    set(&mut bob, json!({ "api_key": null })).await;
    ask(&mut bob).await;
    assert_eq!(paid(&server), format!("Bearer {OURS}"));
    // What happened is written down, but nothing that it was paid with.
    let session = first(&ask(&mut bob).await, "query-accepted")["session_id"].clone();
    let data = world.home.path().join("data");
    let written = events(&data);
    assert!(written.contains(session.as_str().unwrap()) && written.contains("\"name\":\"ann\""));
    for key in [ANNS, BOBS, NEXT, OURS] {
        assert!(!written.contains(key));
        assert_eq!(holds(&data, key), Vec::<String>::new());
        assert_eq!(databases(&data, &[key]), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_key_of_ones_own_opens_what_the_daemon_has_none_for_and_is_never_told() {
    let refused = format!("{{\"error\":{{\"message\":\"Incorrect API key: {ANNS}\"}}}}");
    let server = ReplayServer::start(CannedReply::json(401, &refused)).await.unwrap();
    let world = World::start(&config(&server.url(), None)).await;
    let mut ann = user(&world, "ann", Some(ANNS)).await;
    let mut bob = user(&world, "bob", None).await;
    for (computer, can) in [(&mut ann, true), (&mut bob, false)] {
        computer.send("list-models", json!({})).await;
        let listed = computer.until("models-listed").await.pop().unwrap();
        let online = listed["payload"]["online"].as_array().unwrap();
        assert_eq!(online.iter().any(|model| model["provider"] == "openai"), can);
        computer.send("query", json!({ "text": "hello", "conversation_ref": "c" })).await;
        let error = computer.until("error").await.pop().unwrap();
        assert!(!error.to_string().contains(ANNS), "{error}");
    }
    // Who has no key did not even ask.
    let asked = server.asked();
    let asked: Vec<_> = asked.iter().filter(|asked| asked.method == "POST").collect();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].headers["authorization"], format!("Bearer {ANNS}"));
    assert!(!events(&world.home.path().join("data")).contains(ANNS));
}

/// How often a model was asked.
fn asked(server: &ReplayServer) -> usize {
    server.asked().iter().filter(|asked| asked.method == "POST").count()
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_not_replaced_by_another() {
    let server = ReplayServer::start(CannedReply::stream(ANSWER)).await.unwrap();
    let config = config(&server.url(), Some(OURS)) + "[models]\nfallback = [\"fake/fake\"]\n";
    let mut world = World::start(&config).await;
    let mut ann = user(&world, "ann", Some(ANNS)).await;
    ask(&mut ann).await;
    assert_eq!((paid(&server), asked(&server)), (format!("Bearer {ANNS}"), 1));
    world.terminate();
    let data = world.data_dir();
    std::fs::remove_file(data.join("users.key")).unwrap();
    world.restart();
    let mut ann = Computer::connect(world.windie(), "ann", Value::Null).await;
    ann.send("query", json!({ "text": "hello", "conversation_ref": "d" })).await;
    let frames = ann.until("error").await;
    let error = frames[frames.len() - 1].to_string();
    assert!(error.contains("your key for openai cannot be read"), "{error}");
    let mut frames = frames.iter().filter(|frame| frame["conversation_ref"] == "d");
    assert!(!frames.any(|frame| frame["type"] == "streaming-response"));
    assert_eq!(asked(&server), 1);
    // Whoever enters it again pays again.
    set(&mut ann, json!({ "api_key": NEXT })).await;
    ask_in(&mut ann, "e").await;
    assert_eq!(paid(&server), format!("Bearer {NEXT}"));
    world.terminate();
    assert_eq!(databases(&data, &[ANNS, NEXT]), Vec::<String>::new());
    // An older version kept keys as they came.
    let settings = json!({
        "model_provider": "openai", "selected_model_id": "gpt-5.4",
        "provider_api_keys": { "openai": { "enabled": true, "api_key": BOBS } },
    });
    let database = rusqlite::Connection::open(data.join("quintet.db")).unwrap();
    let set = "UPDATE preferences SET value = ?1 WHERE space = 'windie' AND name = 'ann'";
    assert_eq!(database.execute(set, [settings.to_string()]).unwrap(), 1);
    drop(database);
    assert_ne!(databases(&data, &[BOBS]), Vec::<String>::new());
    world.restart();
    let mut ann = Computer::connect(world.windie(), "ann", Value::Null).await;
    ask_in(&mut ann, "f").await;
    assert_eq!(paid(&server), format!("Bearer {BOBS}"));
    world.terminate();
    assert_eq!(databases(&data, &[ANNS, BOBS, NEXT]), Vec::<String>::new());
}

#[tokio::test]
async fn settings_that_cannot_be_read_are_reported_and_stay() {
    let server = ReplayServer::start(CannedReply::stream(ANSWER)).await.unwrap();
    let mut world = World::start(&config(&server.url(), Some(OURS))).await;
    user(&world, "ann", Some(ANNS)).await;
    world.terminate();
    let newer = json!({
        "model_mode": "quantum", "model_provider": "openai", "selected_model_id": "gpt-5.4",
        "provider_api_keys": { "openai": { "enabled": true, "api_key": "sealed:9:x" } },
    });
    let database = world.data_dir().join("quintet.db");
    let open = || rusqlite::Connection::open(&database).unwrap();
    let set = "UPDATE preferences SET value = ?1 WHERE space = 'windie' AND name = 'ann'";
    assert_eq!(open().execute(set, [newer.to_string()]).unwrap(), 1);
    world.restart();
    let mut ann = Computer::connect(world.windie(), "ann", Value::Null).await;
    for (kind, payload) in [
        ("load-settings", json!({})),
        ("update-settings", json!({ "wakeword_enabled": false })),
        ("list-models", json!({})),
        ("query", json!({ "text": "hello", "conversation_ref": "c" })),
    ] {
        ann.send(kind, payload).await;
        let error = ann.until("error").await.pop().unwrap().to_string();
        assert!(error.contains("Your settings cannot be read"), "{kind}: {error}");
    }
    assert_eq!(asked(&server), 0);
    world.terminate();
    let kept = "SELECT value FROM preferences WHERE space = 'windie' AND name = 'ann'";
    let kept: String = open().query_row(kept, [], |row| row.get(0)).unwrap();
    assert_eq!(kept, newer.to_string());
}

/// The database's files that hold one of these texts.
fn databases(data: &Path, texts: &[&str]) -> Vec<String> {
    let files = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.to_string_lossy().contains("quintet.db"));
    let holds = |path: &std::path::PathBuf| {
        let content = std::fs::read(path).unwrap();
        let holds = |text: &&str| content.windows(text.len()).any(|part| part == text.as_bytes());
        texts.iter().any(holds)
    };
    files.filter(holds).map(|path| path.display().to_string()).collect()
}

/// Everything in the journal.
fn events(data: &Path) -> String {
    let database = rusqlite::Connection::open(data.join("quintet.db")).unwrap();
    let tables: Vec<String> = database
        .prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name != 'preferences'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    tables.iter().map(|table| rows(&database, table)).collect()
}

fn rows(database: &rusqlite::Connection, table: &str) -> String {
    let mut all = database.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
    let columns = all.column_count();
    let row = |row: &rusqlite::Row<'_>| {
        let value = |n| match row.get_ref(n).unwrap() {
            rusqlite::types::ValueRef::Text(text) | rusqlite::types::ValueRef::Blob(text) => {
                String::from_utf8_lossy(text).into_owned()
            }
            _ => String::new(),
        };
        Ok((0..columns).map(value).collect::<String>())
    };
    all.query_map([], row).unwrap().map(Result::unwrap).collect()
}

/// The files below a folder, but the database, that hold a text.
fn holds(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holds(&path, text));
        } else if !path.to_string_lossy().contains("quintet.db") {
            let content = std::fs::read(&path).unwrap_or_default();
            let holds = content.windows(text.len()).any(|part| part == text.as_bytes());
            found.extend(holds.then(|| path.display().to_string()));
        }
    }
    found
}
