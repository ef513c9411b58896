//! Tests of keys in the keyring: stored, used, never shown.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Output, Stdio};

use quintet_testkit::replay_server::{CannedReply, ReplayServer};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, over, text};
use crate::computer::Computer;
use crate::daemon::{self, quintet};
use crate::login::{Login, set_home};
use crate::secrets::files_with;
use crate::windie::keys::ask_in;

const KEY: &str = "sk-kept-in-the-keyring-4711";
const ANSWER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// The whole output of a program, which must not contain the key.
#[track_caller]
fn output_text(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8(text).unwrap();
    assert!(!text.contains(KEY), "{text}");
    text
}

#[track_caller]
fn successful(output: &Output) -> String {
    let text = output_text(output);
    assert!(output.status.success(), "{text}");
    text
}

#[track_caller]
fn fails(output: &Output, part: &str) {
    let text = output_text(output);
    assert!(!output.status.success() && text.contains(part), "{text}");
}

#[test]
fn keys_are_stored_listed_and_removed() {
    let login = Login::open();
    assert_eq!(successful(&login.run(&["keys", "list"], "")), "");
    let output = successful(&login.run(&["keys", "set", "anthropic"], &format!("{KEY}\n")));
    assert!(output.contains("the key for anthropic is in the keyring"), "{output}");
    successful(&login.run(&["keys", "set", "openai"], "sk-another-one"));
    successful(&login.run(&["keys", "set", "openai"], "sk-another-two"));
    assert_eq!(successful(&login.run(&["keys", "list"], "")), "anthropic\nopenai\n");
    let names = std::fs::read_to_string(login.home.path().join("config/quintet/keyring"));
    assert_eq!(names.unwrap(), "anthropic\nopenai\n");
    successful(&login.run(&["keys", "forget", "openai"], ""));
    assert_eq!(successful(&login.run(&["keys", "list"], "")), "anthropic\n");
    fails(&login.run(&["keys", "forget", "openai"], ""), "there is no key for \"openai\"");
    fails(&login.run(&["keys", "set", "antropic"], KEY), "did you mean \"anthropic\"?");
    fails(&login.run(&["keys", "set", "groq"], "\n"), "no key was given");
    fails(&login.run(&["keys", "set", "groq"], "two\nlines"), "not a key");
    fails(&login.run(&["keys", "set", "groq", KEY], ""), "a key is never an argument");
}

#[test]
fn the_effective_configuration_shows_the_sources_of_keys() {
    let login = Login::open();
    for name in ["anthropic", "openai", "groq"] {
        successful(&login.run(&["keys", "set", name], KEY));
    }
    let mut command = login.quintet(&["config", "--set=providers.groq.api_key=gsk-stated"]);
    let shown = successful(&command.env("OPENAI_API_KEY", "sk-variable").output().unwrap());
    for line in [
        "providers.anthropic.api_key = \"***\"  # keyring (anthropic)\n",
        "providers.openai.api_key = \"***\"  # OPENAI_API_KEY\n",
        "providers.groq.api_key = \"***\"  # --set\n",
    ] {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
    assert!(!shown.contains("sk-variable") && !shown.contains("gsk-stated"), "{shown}");
    let mut forced = login.quintet(&["config", "--set=providers.openai.api_key_keyring=true"]);
    let shown = successful(&forced.env("OPENAI_API_KEY", "sk-variable").output().unwrap());
    assert!(shown.contains("providers.openai.api_key = \"***\"  # keyring (openai)\n"), "{shown}");
    let never = ["config", "--set=providers.anthropic.api_key_keyring=false"];
    let shown = successful(&login.run(&never, ""));
    assert!(!shown.contains("providers.anthropic.api_key ="), "{shown}");
    let output = output_text(&login.run(&["doctor", "--listen=harness=off"], ""));
    assert!(
        output.contains("ok    keyring        has the key for anthropic, groq, openai"),
        "{output}"
    );
}

/// A daemon in a session whose only provider is this server, without its own key.
fn serve(login: &Login, server: &ReplayServer) -> (Child, Client) {
    let mut command = login.quintet(&[
        "serve",
        "--listen=harness=127.0.0.1:0",
        "--set=default_model=fake/fake",
        "--set=providers.fake.api=openai-chat",
        &format!("--set=providers.fake.base_url={}/v1", server.url()),
    ]);
    let command = command.env("QUINTET_LOG", "trace");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value =
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{}", log(&mut child)));
    let client = Client::new(ready["listeners"]["harness"].as_str().unwrap());
    (child, client)
}

/// Ends a daemon; returns its log.
fn log(child: &mut Child) -> String {
    child.kill().unwrap();
    child.wait().unwrap();
    std::io::read_to_string(child.stderr.take().unwrap()).unwrap()
}

/// Runs a turn; returns all output of the daemon.
async fn talk(client: &Client, login: &Login) -> (String, String) {
    let id = client.create(login.home.path()).await;
    let part = json!({ "type": "text", "text": "hi" });
    let body = json!({ "role": "user", "parts": [part], "auto_run": true });
    client.post(&format!("/v1/sessions/{id}/messages"), body).await;
    let events = client.until(&id, over).await;
    let (_, models) = client.get("/v1/models").await;
    let heard = format!("{events:?} {models} {}", client.session(&id).await);
    (text(&events), heard)
}

#[tokio::test]
async fn a_provider_uses_its_key_in_the_keyring() {
    let login = Login::open();
    let server = ReplayServer::start(CannedReply::stream(ANSWER)).await.unwrap();
    let named = ["keys", "set", "fake", "--set=providers.fake.api=openai-chat"];
    let url = "--set=providers.fake.base_url=http://x/v1";
    successful(&login.run(&[&named[..], &[url]].concat(), KEY));
    let (mut child, client) = serve(&login, &server);
    let (answer, heard) = talk(&client, &login).await;
    assert_eq!(answer, "hello");
    let bearer = format!("Bearer {KEY}");
    let asked = server.asked();
    let asked = asked.iter().find(|asked| asked.method == "POST").unwrap();
    assert_eq!(asked.headers.get("authorization"), Some(&bearer));
    let log = log(&mut child);
    assert!(!log.is_empty() && !log.contains(KEY) && !heard.contains(KEY), "{log}\n{heard}");
    assert_eq!(files_with(&login.home.path().join("data/quintet"), KEY), Vec::<String>::new());
}

/// A daemon in a session whose users bring keys for this server; returns its address.
fn serve_users(login: &Login, server: &ReplayServer) -> (Child, String) {
    let data = login.home.path().join("data");
    let mut command = login.quintet(&[
        "serve",
        &format!("--data-dir={}", data.display()),
        "--listen=harness=off",
        "--listen=windie=127.0.0.1:0",
        "--set=default_model=openai/gpt-5.4",
        "--set=providers.openai.api=openai-chat",
        &format!("--set=providers.openai.base_url={}/v1", server.url()),
    ]);
    let (child, ready) = daemon::serve(&mut command);
    (child, ready["listeners"]["windie"].as_str().unwrap().into())
}

#[tokio::test]
async fn users_keys_are_encrypted_with_a_key_in_the_keyring() {
    let login = Login::open();
    successful(&login.run(&["keys", "set", "groq"], "sk-of-somebody-else"));
    let server = ReplayServer::start(CannedReply::stream(ANSWER)).await.unwrap();
    for round in 0..2 {
        let (mut child, url) = serve_users(&login, &server);
        let mut ann = Computer::connect(&url, "ann", Value::Null).await;
        if round == 0 {
            let key = json!({ "openai": { "enabled": true, "api_key": KEY } });
            ann.send("update-settings", json!({ "provider_api_keys": key })).await;
            ann.until("settings-updated").await;
        }
        ask_in(&mut ann, &format!("c{round}")).await;
        child.kill().unwrap();
        child.wait().unwrap();
        let asked = server.asked();
        let asked: Vec<_> = asked.iter().filter(|asked| asked.method == "POST").collect();
        assert_eq!(asked.len(), round + 1);
        assert_eq!(asked[round].headers["authorization"], format!("Bearer {KEY}"));
    }
    let data = login.home.path().join("data");
    let content = std::fs::read_to_string(data.join("users.key")).unwrap();
    assert!(content.starts_with("keyring "), "{content}");
    assert_eq!(files_with(&data, KEY), Vec::<String>::new());
    assert_eq!(successful(&login.run(&["keys", "list"], "")), "groq\n");
}

#[tokio::test]
async fn a_locked_keyring_is_reported_once_and_not_unlocked() {
    let login = Login::open();
    successful(&login.run(&["keys", "set", "anthropic"], KEY));
    successful(&login.run(&["keys", "set", "openai"], KEY));
    let login = login.locked();
    let listed = successful(&login.run(&["keys", "list"], ""));
    assert_eq!(listed, "anthropic  (locked)\nopenai  (locked)\n");
    let server = ReplayServer::start(CannedReply::stream(ANSWER)).await.unwrap();
    let (mut child, client) = serve(&login, &server);
    assert_eq!(talk(&client, &login).await.0, "hello");
    assert!(!server.asked()[0].headers.contains_key("authorization"));
    let log = log(&mut child);
    let line = "no key for anthropic, openai: the keyring is locked";
    assert_eq!(log.matches(line).count(), 1, "{log}");
    let output = output_text(&login.run(&["doctor", "--listen=harness=off"], ""));
    assert!(output.contains(&format!("warn  keyring        {line}")), "{output}");
    fails(&login.run(&["keys", "set", "groq"], KEY), "unlock it");
}

#[tokio::test]
async fn without_a_keyring_there_is_a_clear_error_and_a_daemon() {
    let home = TempDir::new().unwrap();
    std::fs::create_dir_all(home.path().join("config/quintet")).unwrap();
    std::fs::write(home.path().join("config/quintet/keyring"), "anthropic\n").unwrap();
    let alone = |arguments: &[&str]| {
        let mut command = quintet(arguments);
        set_home(&mut command, home.path());
        command.stdin(Stdio::null()).output().unwrap()
    };
    let none = "there is no keyring service in this session";
    for arguments in [&["keys", "set", "openai"][..], &["keys", "list"], &["keys", "forget", "x"]] {
        let output = alone(arguments);
        fails(&output, none);
        fails(&output, "api_key_env");
    }
    let output = output_text(&alone(&["doctor", "--listen=harness=off"]));
    assert!(
        output.contains(&format!("warn  keyring        no key for anthropic: {none}")),
        "{output}"
    );

    let login = Login::without_keyring();
    fails(&login.run(&["keys", "list"], ""), none);
    std::fs::create_dir_all(login.home.path().join("config/quintet")).unwrap();
    std::fs::write(login.home.path().join("config/quintet/keyring"), "anthropic\n").unwrap();
    let server = ReplayServer::start(CannedReply::stream(ANSWER)).await.unwrap();
    let (mut child, client) = serve(&login, &server);
    assert_eq!(talk(&client, &login).await.0, "hello");
    let log = log(&mut child);
    assert_eq!(log.matches(none).count(), 1, "{log}");
    fails(&login.run(&["keys", "forget", "anthropic"], ""), "is no longer looked up");
    let shown = successful(&login.run(&["config"], ""));
    assert!(!shown.contains("keyring"), "{shown}");
}

#[test]
fn a_hanging_keyring_does_not_block() {
    let home = TempDir::new().unwrap();
    let socket = home.path().join("bus");
    let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let flags = ["config", "--set=providers.groq.api_key_keyring=true"];
    let mut command = quintet(&flags);
    set_home(&mut command, home.path());
    let address = format!("unix:path={}", socket.display());
    let shown = successful(&command.env("DBUS_SESSION_BUS_ADDRESS", address).output().unwrap());
    assert!(shown.contains("# no key for groq: the keyring does not answer; "), "{shown}");
}

#[test]
fn a_typed_key_is_not_shown() {
    let login = Login::open();
    let mut command = std::process::Command::new("script");
    let typed = format!("{} keys set groq", env!("CARGO_BIN_EXE_quintet"));
    command.args(["--quiet", "--return", "--flush", "--command", &typed, "/dev/null"]);
    let command = login.enter(&mut command).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("script is a part of every Debian");
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut seen = Vec::new();
    // Text that is typed before the prompt appears would be visible.
    while !seen.ends_with(b"key for groq: ") {
        let mut byte = [0];
        screen.read_exact(&mut byte).expect("a prompt");
        seen.push(byte[0]);
    }
    keyboard.write_all(format!("oops\x15{KEY}x\x7f\r").as_bytes()).unwrap();
    screen.read_to_end(&mut seen).unwrap();
    let status = child.wait().unwrap();
    let seen = String::from_utf8(seen).unwrap();
    assert!(status.success() && seen.contains("is in the keyring"), "{seen}");
    assert!(!seen.contains(KEY) && !seen.contains("oops"), "{seen}");
    assert_eq!(successful(&login.run(&["keys", "list"], "")), "groq\n");
}
