//! A daemon that keeps sessions in PostgreSQL, and the way there and back.

use std::path::Path;

use quintet_testkit::postgres::Server;
use serde_json::json;
use tempfile::TempDir;

use crate::client::text;
use crate::daemon::{World, quintet};

const QUIET: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";

fn store(url: &str) -> String {
    format!("[store]\nurl = {url:?}\n[node]\nname = \"a\"\n")
}

/// Runs `quintet migrate`; gives what it printed.
fn migrate(world: &World, arguments: &[&str]) -> String {
    let file = world.home.path().join("quintet.toml");
    let all = [&["migrate", "--config", file.to_str().unwrap()], arguments].concat();
    let done = quintet(&all).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test]
async fn sessions_move_to_postgres_and_back() {
    let url = Server::shared().fresh();
    let mut world = World::start(QUIET).await;
    let session = world.client().create(world.workspace()).await;
    world.client().say(&session, json!([{ "text": "from sqlite" }])).await;
    world.client().until_over(&session).await;
    let before = world.client().history(&session).await;
    world.terminate();
    let report = migrate(&world, &["--to", &url]);
    assert!(report.starts_with("copied and compared: 1 sessions with "), "{report}");

    world.reconfigure(QUIET, &format!("{}{QUIET}", store(&url)));
    world.restart();
    assert_eq!(world.client().history(&session).await, before);
    world.client().say(&session, json!([{ "text": "from postgres" }])).await;
    let events = world.client().until_over(&session).await;
    assert!(text(&events).contains("from postgres"), "{events:?}");
    // A daemon that is killed finds everything again, at once.
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

/// The configuration of a place for content of more than 1 KiB: in the S3-compatible store that `S3_ENDPOINT`
/// names (`make s3`), otherwise in a folder.
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
async fn long_content_is_an_object_and_moves_back() {
    let (url, folder) = (Server::shared().fresh(), TempDir::new().unwrap());
    let config = store(&url).replace("[store]\n", &blobs(folder.path()));
    let mut world = World::start(&format!("{config}{QUIET}")).await;
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
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("can be written, for content of more than 1 KiB"), "{said}");
    world.terminate();
    let report = migrate(&world, &["--to", "sqlite"]);
    assert!(report.contains(" 1 blobs,"), "{report}");
    world.reconfigure(&config, "");
    world.restart();
    let kept = world.home.path().join("data/sessions").join(&session).join("attachments/a.txt");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), content);
}

#[tokio::test]
async fn a_newer_database_keeps_the_daemon_from_starting() {
    let url = Server::shared().fresh();
    let mut world = World::start(&format!("{}{QUIET}", store(&url))).await;
    world.terminate();
    let newer = "UPDATE quintet_meta SET value = '99' WHERE key = 'schema_version'";
    Server::shared().run_on(&url, newer);
    let file = world.home.path().join("quintet.toml");
    let refused = quintet(&["serve", "--config", file.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(said.contains("schema version 99"), "{said}");
}
