//! Tests of the small model inside the daemon.

use std::path::Path;
use std::process::{Child, Command};

use serde_json::json;
use tempfile::TempDir;

use crate::client::{Client, over, text};
use crate::daemon::{quintet, serve};

/// The program with the user's own models, which are downloaded once and not for every clone.
fn with_models(arguments: &[&str]) -> Command {
    let mut command = quintet(arguments);
    command.env_remove("QUINTET_LOCAL_MODELS_DIR");
    command
}

#[tokio::test]
async fn a_local_model_is_downloaded_and_answers() {
    assert!(with_models(&["models", "pull", "small"]).status().unwrap().success());
    let home = TempDir::new().unwrap();
    let (child, ready) = serve(&mut with_models(&[
        "serve",
        "--data-dir",
        home.path().to_str().unwrap(),
        "--listen=harness=127.0.0.1:0",
        "--set=default_model=local/smollm2-135m",
        "--set=local.threads=1",
        // Such a small model is easily distracted by other text in its prompt.
        "--set=context.tokens=0",
        "--set=memory.enabled=false",
        "--set=listen.jarvis=off",
        "--set=listen.agent=off",
        "--set=listen.agent_health=off",
        "--set=listen.terminal=off",
        "--set=listen.openai=off",
        "--set=listen.windie=off",
    ]));
    let _child = Ended(child);
    let client = Client::new(ready["listeners"]["harness"].as_str().unwrap());
    let (_, models) = client.get("/v1/models").await;
    assert!(models.to_string().contains("local/smollm2-135m"), "{models}");

    // The prompt contains the same workspace each time, and sampling is deterministic.
    let id = client.create(Path::new("/usr")).await;
    let part = json!({ "type": "text", "text": "What is the capital of France?" });
    let body = json!({ "role": "user", "parts": [part], "auto_run": true, "temperature": 0 });
    client.post(&format!("/v1/sessions/{id}/messages"), body).await;
    let events = client.until(&id, over).await;
    assert!(text(&events).contains("Paris"), "{events:?}");
    let loading = events.iter().find(|event| event.kind() == "model_retrying").unwrap();
    assert_eq!(loading.json["message"], "smollm2-135m is being loaded (98 MB)");
}

/// A process that is killed at the end of its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn models_are_listed_and_unknown_ones_named() {
    let listed = quintet(&["models", "--all"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let line = listed.lines().find(|line| line.starts_with("local/qwen2.5-coder-1.5b ")).unwrap();
    assert!(line.contains(" absent ") && line.contains(" tools"), "{line}");
    let unknown = quintet(&["models", "pull", "gpt-9"]).output().unwrap();
    let error = String::from_utf8(unknown.stderr).unwrap();
    assert!(
        !unknown.status.success() && error.contains("there is no local model \"gpt-9\""),
        "{error}"
    );
    let other = quintet(&["models", "pull", "--set=default_model=demo/demo"]).output().unwrap();
    let output = String::from_utf8(other.stdout).unwrap();
    assert_eq!(output, "sessions use demo/demo, which needs nothing fetched\n");
}
