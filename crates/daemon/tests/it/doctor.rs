//! `quintet doctor`, run as a user would.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use tempfile::TempDir;

use crate::daemon::{World, quintet};

/// What the doctor says of a configuration, and whether all is well.
fn examine(config: &str) -> (String, bool) {
    examine_with(config, &[])
}

fn examine_with(config: &str, flags: &[&str]) -> (String, bool) {
    let home = TempDir::new().unwrap();
    let file = home.path().join("quintet.toml");
    let data = home.path().join("data");
    std::fs::write(&file, format!("data_dir = {data:?}\n{config}")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let arguments = [&["doctor", "--config", file.to_str().unwrap()], flags].concat();
    said(quintet(&arguments).output().unwrap())
}

fn said(output: Output) -> (String, bool) {
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

#[test]
fn a_good_set_up_is_well() {
    let (told, well) = examine("[listen]\nharness = \"127.0.0.1:0\"\n");
    assert!(well, "{told}");
    for line in ["sandbox", "file tools", "git", "data", "configuration", "harness", "model"] {
        assert!(told.contains(&format!(" {line}")), "no line about {line}: {told}");
    }
    assert!(told.contains("warn  model          sessions use the demo model"), "{told}");
}

#[test]
fn what_is_ill_is_named_with_its_cure() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (told, well) = examine(&format!("[listen]\nharness = \"{address}\"\n"));
    assert!(!well);
    assert!(told.contains(&format!("FAIL  harness        {address}")), "{told}");
    assert!(told.contains("-> set listen.harness to another address, or \"off\""), "{told}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (told, well) = examine(&format!(
        "default_model = \"mine/m\"\n[listen]\nharness = \"off\"\n\
         [providers.mine]\napi = \"openai-chat\"\nbase_url = \"http://{closed}/v1\"\napi_key = \"sk-hidden\"\n"
    ));
    assert!(!well && told.contains("does not answer"), "{told}");
    assert!(!told.contains("sk-hidden"));
    let (told, well) = examine("[listen]\nharness = \"nowhere\"\n");
    assert!(!well && told.contains("FAIL  configuration"), "{told}");
}

#[test]
fn who_may_connect_is_said_of_every_listener() {
    let listen = "[listen]\nharness = \"127.0.0.1:0\"\nwindie = \"off\"\nterminal = \"/tmp/quintet-none.sock\"\n";
    let (told, _) = examine(listen);
    for protocol in ["harness", "jarvis", "agent", "agent_health", "terminal"] {
        let line = told.lines().find(|line| line.contains(&format!(" {protocol} "))).unwrap();
        assert!(line.ends_with("; for this user alone"), "{line}");
    }
    let open = listen.replace("127.0.0.1", "0.0.0.0");
    let (told, well) = examine(&open);
    assert!(!well && told.contains("auth.token must be set"), "{told}");
    let auth = "[auth]\ntoken = \"hush\"\norigins = [\"http://localhost:3000\"]\n";
    let (told, _) = examine(&format!("{open}{auth}"));
    let line = told.lines().find(|line| line.contains(" harness ")).unwrap();
    let who = "; for clients with auth.token, pages of http://localhost:3000";
    assert!(line.starts_with("warn") && line.ends_with(who), "{line}");
    assert!(!told.contains("hush"), "{told}");
}

#[test]
fn weights_are_checked() {
    let models = TempDir::new().unwrap();
    let dir = format!("--set=local.models_dir={}", models.path().display());
    let look = |flags: &[&str]| {
        examine_with("[listen]\nharness = \"off\"\n", &[&[dir.as_str()], flags].concat())
    };
    let (told, well) = look(&[]);
    assert!(well && told.contains("none downloaded, none needed"), "{told}");
    let (told, well) = look(&["--set=default_model=local/smollm2-135m"]);
    assert!(
        !well && told.contains("FAIL  model files    smollm2-135m is not downloaded"),
        "{told}"
    );
    assert!(told.contains("-> quintet models pull smollm2-135m"), "{told}");
    std::fs::write(models.path().join("smollm2-135m.gguf.part"), "GGUF").unwrap();
    let (told, well) = look(&[]);
    assert!(
        well && told.contains("warn  model files    smollm2-135m: 4 of 98362432 bytes"),
        "{told}"
    );
    let file = std::fs::File::create(models.path().join("smollm2-135m.gguf")).unwrap();
    file.set_len(98_362_432).unwrap();
    let (told, well) = look(&[]);
    assert!(!well && told.contains("smollm2-135m.gguf has the wrong hash"), "{told}");
}

#[tokio::test]
async fn a_running_daemon_is_no_trouble() {
    let world = World::start("").await;
    let file = world.home.path().join("quintet.toml");
    let (told, well) =
        said(quintet(&["doctor", "--config", file.to_str().unwrap()]).output().unwrap());
    assert!(well, "{told}");
    assert!(told.contains("is in use by a daemon"), "{told}");
    assert!(told.contains("other users can read"), "the file has a key and is open to all: {told}");
}
