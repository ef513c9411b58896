//! Tests of `quintet doctor`.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use tempfile::TempDir;

use crate::daemon::{World, quintet};

/// The output of the doctor for a configuration, and whether it succeeded.
fn run(config: &str) -> (String, bool) {
    run_with(config, &[])
}

fn run_with(config: &str, flags: &[&str]) -> (String, bool) {
    let home = TempDir::new().unwrap();
    let file = home.path().join("quintet.toml");
    let data = home.path().join("data");
    std::fs::write(&file, format!("data_dir = {data:?}\n{config}")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let arguments = [&["doctor", "--config", file.to_str().unwrap()], flags].concat();
    result(quintet(&arguments).output().unwrap())
}

fn result(output: Output) -> (String, bool) {
    (String::from_utf8(output.stdout).unwrap(), output.status.success())
}

#[test]
fn a_valid_setup_has_no_errors() {
    let (output, well) = run("[listen]\nharness = \"127.0.0.1:0\"\n");
    assert!(well, "{output}");
    for line in ["sandbox", "file tools", "git", "data", "configuration", "harness", "model"] {
        assert!(output.contains(&format!(" {line}")), "no line about {line}: {output}");
    }
    assert!(output.contains("warn  model          sessions use the demo model"), "{output}");
}

#[test]
fn problems_are_named_with_a_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let (output, well) = run(&format!("[listen]\nharness = \"{address}\"\n"));
    assert!(!well);
    assert!(output.contains(&format!("FAIL  harness        {address}")), "{output}");
    assert!(output.contains("-> set listen.harness to another address, or \"off\""), "{output}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (output, well) = run(&format!(
        "default_model = \"mine/m\"\n[listen]\nharness = \"off\"\n\
         [providers.mine]\napi = \"openai-chat\"\nbase_url = \"http://{closed}/v1\"\napi_key = \"sk-hidden\"\n"
    ));
    assert!(!well && output.contains("does not answer"), "{output}");
    assert!(!output.contains("sk-hidden"));
    let (output, well) = run("[listen]\nharness = \"nowhere\"\n");
    assert!(!well && output.contains("FAIL  configuration"), "{output}");
}

#[test]
fn allowed_peers_are_printed_for_every_listener() {
    let listen = "[listen]\nharness = \"127.0.0.1:0\"\nwindie = \"off\"\nterminal = \"/tmp/quintet-none.sock\"\n";
    let (output, _) = run(listen);
    for protocol in ["harness", "jarvis", "agent", "agent_health", "terminal"] {
        let line = output.lines().find(|line| line.contains(&format!(" {protocol} "))).unwrap();
        assert!(line.ends_with("; for this user alone"), "{line}");
    }
    let open = listen.replace("127.0.0.1", "0.0.0.0");
    let (output, well) = run(&open);
    assert!(!well && output.contains("auth.token must be set"), "{output}");
    let auth = "[auth]\ntoken = \"hush\"\norigins = [\"http://localhost:3000\"]\n";
    let (output, _) = run(&format!("{open}{auth}"));
    let line = output.lines().find(|line| line.contains(" harness ")).unwrap();
    let who = "; for clients with auth.token, pages of http://localhost:3000";
    assert!(line.starts_with("warn") && line.ends_with(who), "{line}");
    assert!(!output.contains("hush"), "{output}");
}

#[test]
fn weights_are_checked() {
    let models = TempDir::new().unwrap();
    let dir = format!("--set=local.models_dir={}", models.path().display());
    let look = |flags: &[&str]| {
        run_with("[listen]\nharness = \"off\"\n", &[&[dir.as_str()], flags].concat())
    };
    let (output, well) = look(&[]);
    assert!(well && output.contains("none downloaded, none needed"), "{output}");
    let (output, well) = look(&["--set=default_model=local/smollm2-135m"]);
    assert!(
        !well && output.contains("FAIL  model files    smollm2-135m is not downloaded"),
        "{output}"
    );
    assert!(output.contains("-> quintet models pull smollm2-135m"), "{output}");
    std::fs::write(models.path().join("smollm2-135m.gguf.part"), "GGUF").unwrap();
    let (output, well) = look(&[]);
    assert!(
        well && output.contains("warn  model files    smollm2-135m: 4 of 98362432 bytes"),
        "{output}"
    );
    let file = std::fs::File::create(models.path().join("smollm2-135m.gguf")).unwrap();
    file.set_len(98_362_432).unwrap();
    let (output, well) = look(&[]);
    assert!(!well && output.contains("smollm2-135m.gguf has the wrong hash"), "{output}");
}

#[tokio::test]
async fn a_running_daemon_is_no_error() {
    let world = World::start("").await;
    let file = world.home.path().join("quintet.toml");
    let (output, well) =
        result(quintet(&["doctor", "--config", file.to_str().unwrap()]).output().unwrap());
    assert!(well, "{output}");
    assert!(output.contains("is in use by a daemon"), "{output}");
    assert!(
        output.contains("other users can read"),
        "the file has a key and is world-readable: {output}"
    );
}
