//! Tests that keys never appear in output of the daemon, even if a provider repeats them.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use quintet_testkit::replay_server::{CannedReply, ReplayServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, kinds, over};
use crate::daemon::quintet;

const KEY: &str = "sk-that-nobody-may-see-0815";
const FAMILIES: [&str; 4] = ["openai-chat", "openai-responses", "anthropic", "gemini"];

/// A daemon with all log output and this server as a provider of each family.
fn serve(home: &Path, url: &str) -> (Child, Client) {
    let mut config =
        format!("data_dir = {:?}\n[listen]\nharness = \"127.0.0.1:0\"\n", home.join("data"));
    for api in FAMILIES {
        config += &format!(
            "[providers.{api}]\napi = \"{api}\"\nbase_url = \"{url}/v1\"\napi_key = \"{KEY}\"\n\
             models = [\"m\"]\nretries = 1\n"
        );
    }
    let file = home.join("quintet.toml");
    std::fs::write(&file, config).unwrap();
    let mut command = quintet(&["serve", "--config", file.to_str().unwrap()]);
    let command = command.env("QUINTET_LOG", "trace").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).expect(&line);
    (child, Client::new(ready["listeners"]["harness"].as_str().unwrap()))
}

/// Everything that a client receives of one failed turn with each family.
async fn fail(client: &Client, home: &Path) -> String {
    let mut heard = String::new();
    for api in FAMILIES {
        let model = format!("{api}/m");
        let body = json!({ "workspace_path": home, "model": model });
        let (status, session) = client.post("/v1/sessions", body).await;
        assert_eq!(status, 200, "{session}");
        let id = session["session_id"].as_str().unwrap();
        let part = json!({ "type": "text", "text": "hi" });
        let body = json!({ "role": "user", "parts": [part], "model": model, "auto_run": true });
        let (_, told) = client.post(&format!("/v1/sessions/{id}/messages"), body).await;
        let events = client.until(id, over).await;
        assert!(kinds(&events).contains(&"turn_failed".into()), "{api}: {events:?}");
        heard += &format!(
            "{told} {events:?} {} {:?}",
            client.session(id).await,
            client.history(id).await
        );
    }
    heard + &client.get("/v1/models").await.1.to_string()
}

/// The files below a folder that contain these bytes.
pub(crate) fn files_with(folder: &Path, bytes: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, bytes));
            continue;
        }
        let content = std::fs::read(&path).unwrap_or_default();
        if content.windows(bytes.len()).any(|window| window == bytes.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[tokio::test]
async fn a_key_that_a_provider_repeats_is_redacted() {
    let body = format!(r#"{{"error":{{"message":"Bearer {KEY} is wrong","type":"{KEY}"}}}}"#);
    let stream = format!(
        "event: error\ndata: {{\"type\":\"error\",\"error\":{{\"message\":\"{KEY}\"}}}}\n\n"
    );
    for reply in
        [CannedReply::json(401, &body), CannedReply::json(503, &body), CannedReply::stream(stream)]
    {
        let home = TempDir::new().unwrap();
        let server = ReplayServer::start(reply).await.unwrap();
        let (mut child, client) = serve(home.path(), &server.url());
        let heard = fail(&client, home.path()).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let log = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        let shown =
            server.asked().iter().filter(|asked| format!("{asked:?}").contains(KEY)).count();
        assert!(shown >= FAMILIES.len(), "every family received the key");
        assert!(!heard.contains(KEY), "{heard}");
        assert!(!log.is_empty() && !log.contains(KEY), "{log}");
        assert_eq!(files_with(&home.path().join("data"), KEY), Vec::<String>::new());
    }
}

/// The invalid line may be the one with the key.
#[test]
fn an_invalid_configuration_is_not_quoted() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("q.toml");
    for (config, says) in [
        (format!("[providers.openai]\napi_key = \"{KEY}\nretries = 1\n"), "is not TOML: line 2"),
        (format!("[providers.openai]\napi_key = {KEY}\n"), "is not TOML: line 2"),
        (format!("[providers.openai]\napi_key = [\"{KEY}\"]\n"), "must be a string"),
        (
            format!("[providers.openai]\napi_key_env = \"{KEY}\"\n"),
            "must be the name of a variable",
        ),
        (format!("[providers.openai]\napi_kye = \"{KEY}\"\n"), "did you mean"),
    ] {
        std::fs::write(&file, &config).unwrap();
        for verb in ["serve", "config", "doctor", "models"] {
            let output = quintet(&[verb, "--config", file.to_str().unwrap()]).output().unwrap();
            let said = [&output.stdout[..], &output.stderr[..]].concat();
            let said = String::from_utf8(said).unwrap();
            assert!(said.contains(says) && !said.contains(KEY), "{verb} {config}: {said}");
        }
    }
}
