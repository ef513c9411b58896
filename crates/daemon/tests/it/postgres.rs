//! Tests of sessions in PostgreSQL, and of migrating there and back.

use std::path::Path;

use quintet_testkit::postgres::Server;
use serde_json::json;
use tempfile::TempDir;

use crate::client::text;
use crate::daemon::{World, quintet};

const NO_APPROVALS: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";

fn store(url: &str) -> String {
    format!("[store]\nurl = {url:?}\n[node]\nname = \"a\"\n")
}

/// Runs `quintet migrate`; returns its output.
fn migrate(world: &World, arguments: &[&str]) -> String {
    let file = world.home.path().join("quintet.toml");
    let all = [&["migrate", "--config", file.to_str().unwrap()], arguments].concat();
    let done = quintet(&all).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test]
async fn sessions_are_migrated_to_postgres_and_back() {
    let url = Server::shared().fresh();
    let mut world = World::start(NO_APPROVALS).await;
    let session = world.client().create(world.workspace()).await;
    world.client().say(&session, json!([{ "text": "from sqlite" }])).await;
    world.client().until_over(&session).await;
    let before = world.client().history(&session).await;
    world.terminate();
    let report = migrate(&world, &["--to", &url]);
    assert!(report.starts_with("copied and compared: 1 sessions with "), "{report}");

    world.reconfigure(NO_APPROVALS, &format!("{}{NO_APPROVALS}", store(&url)));
    world.restart();
    assert_eq!(world.client().history(&session).await, before);
    world.client().say(&session, json!([{ "text": "from postgres" }])).await;
    let events = world.client().until_over(&session).await;
    assert!(text(&events).contains("from postgres"), "{events:?}");
    // A killed daemon finds everything again immediately.
    world.kill();
    world.restart();
    let after = world.client().history(&session).await;
    assert!(after.len() > before.len());
    world.terminate();

    let back = world.home.path().join("data/quintet.db");
    std::fs::remove_file(&back).unwrap();
    migrate(&world, &["--to", "sqlite"]);
    world.reconfigure(&store(&url), "");
    world.restart();
    assert_eq!(world.client().history(&session).await, after);
}

/// The configuration of an object store for content of more than 1 KiB: in the S3-compatible server
/// that `S3_ENDPOINT` names (`make s3`), otherwise in a folder.
fn blobs(folder: &Path) -> String {
    let process = std::process::id();
    let url = match std::env::var_os("S3_ENDPOINT") {
        Some(endpoint) => {
            format!("s3://quintet/daemon-{process}?endpoint={}", endpoint.to_string_lossy())
        }
        None => format!("file://{}", folder.display()),
    };
    format!(
        "[store]\nblobs = {url:?}\nblob_limit_kib = 1\ns3_access_key = \"S3RVER\"\ns3_secret_key = \"S3RVER\"\n"
    )
}

#[tokio::test]
async fn long_content_is_stored_as_objects_and_migrated_back() {
    let (url, folder) = (Server::shared().fresh(), TempDir::new().unwrap());
    let config = store(&url).replace("[store]\n", &blobs(folder.path()));
    let mut world = World::start(&format!("{config}{NO_APPROVALS}")).await;
    let session = world.client().create(world.workspace()).await;
    let (content, base64) = ("ABC".repeat(2000), "QUJD".repeat(2000));
    let attachment =
        json!({ "name": "a.txt", "mime_type": "text/plain", "content_base64": base64 });
    let path = format!("/v1/sessions/{session}/attachments");
    assert_eq!(world.client().post(&path, attachment).await.0, 200);
    let objects = || Server::shared().run_on(&url, "SELECT count(*) FROM blobs WHERE body IS NULL");
    assert_eq!(objects(), "1");
    let file = world.home.path().join("quintet.toml");
    let doctor = quintet(&["doctor", "--config", file.to_str().unwrap()]).output().unwrap();
    let output = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(output.contains("can be written, for content of more than 1 KiB"), "{output}");
    world.terminate();
    let report = migrate(&world, &["--to", "sqlite"]);
    assert!(report.contains(" 1 blobs,"), "{report}");
    world.reconfigure(&config, "");
    world.restart();
    let kept = world.home.path().join("data/sessions").join(&session).join("attachments/a.txt");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), content);
}

#[tokio::test]
async fn a_newer_database_prevents_the_start() {
    let url = Server::shared().fresh();
    let mut world = World::start(&format!("{}{NO_APPROVALS}", store(&url))).await;
    world.terminate();
    let newer = "UPDATE quintet_meta SET value = '99' WHERE key = 'schema_version'";
    Server::shared().run_on(&url, newer);
    let file = world.home.path().join("quintet.toml");
    let refused = quintet(&["serve", "--config", file.to_str().unwrap()]).output().unwrap();
    let output = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(output.contains("schema version 99"), "{output}");
}
