//! Tools of MCP servers, from the configuration to the model's call.

mod login;
mod prompts;
mod questions;
mod sandbox;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use quintet_testkit::model_server::ModelServer;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use crate::client::{Client, Event, text};
use crate::daemon::{World, appears, quintet, spawn, until};

const NO_APPROVALS: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py")
}

/// The configuration of a server on stdio, which may write where it takes notes.
fn stdio(name: &str, more: &str, env: &[(&str, &str)]) -> String {
    let notes = env.iter().filter(|(name, _)| *name == "NOTE");
    let notes: String = notes.map(|(_, path)| format!("write = [{path:?}]\n")).collect();
    let more = format!("{notes}{more}");
    let env: Vec<String> = env.iter().map(|(name, value)| format!("{name} = {value:?}")).collect();
    format!(
        "[mcp.servers.{name}]\ncommand = [\"python3\", {:?}]\n{more}\n[mcp.servers.{name}.env]\n{}\n",
        fixture(),
        env.join("\n")
    )
}

fn call(name: &str, args: Value) -> Value {
    json!({ "tools": [{ "name": name, "args": args }] })
}

/// The tools of the last model call.
fn offered(model: &ModelServer) -> Vec<String> {
    let calls = model.calls();
    let tools = calls.last().and_then(|call| call["tools"].as_array().cloned()).unwrap_or_default();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

/// Creates a session whose model is offered this tool.
async fn session_with(world: &World, tool: &str) -> String {
    let client = world.client();
    let id = client.create(world.workspace()).await;
    until(&format!("{tool} is offered"), async || {
        client.say(&id, json!([{ "text": "ok" }])).await;
        client.until_over(&id).await;
        offered(&world.model).iter().any(|name| name == tool)
    })
    .await;
    id
}

/// The outcomes of the calls of a turn: the tool, whether it succeeded, and the text for the model.
async fn turn(client: &Client, id: &str, script: Value) -> Vec<(String, bool, String)> {
    let from = client.history(id).await.len();
    client.say(id, script).await;
    let events = client.until_over(id).await;
    outcomes(&events[from.min(events.len())..])
}

fn outcomes(events: &[Event]) -> Vec<(String, bool, String)> {
    let completed = events.iter().filter(|event| event.kind() == "tool_call_completed");
    completed
        .map(|event| {
            let data = &event.json["data"];
            let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
            (text("tool"), data["ok"].as_bool().unwrap(), text("output"))
        })
        .collect()
}

fn is_alive(pid: &Pid) -> bool {
    test_kill_process(*pid).is_ok()
}

/// The processes below the daemon. A server knows itself by another number, that of its namespace.
fn processes(world: &World) -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parent = |pid: i32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<i32>().ok()
    };
    let parents: HashMap<i32, i32> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let daemon = world.pid().as_raw_pid();
    let is_below = |pid: &&i32| {
        std::iter::successors(parents.get(pid), |pid| parents.get(pid)).any(|pid| *pid == daemon)
    };
    parents.keys().filter(is_below).map(|pid| Pid::from_raw(*pid).unwrap()).collect()
}

#[tokio::test]
async fn tools_of_a_server_are_offered_and_invalid_ones_skipped() {
    let world = World::start(&format!(
        "{NO_APPROVALS}{}",
        stdio("fix", "", &[("API_KEY", "s3cret-value")])
    ))
    .await;
    let client = world.client();
    let id = session_with(&world, "fix__echo").await;
    let names = offered(&world.model);
    assert!(
        names.contains(&"fix__dotted_name".into()) && names.contains(&"shell".into()),
        "{names:?}"
    );
    assert!(!names.iter().any(|name| name.contains("bad_schema") || name.contains("no_object")));
    let script = json!([
        call("fix__echo", json!({ "text": "hello" })),
        call("fix__structured", json!({})),
        call("fix__fail", json!({})),
        call("fix__echo", json!({})),
        call("fix__dotted_name", json!({})),
        call("fix__environment", json!({})),
        { "text": "done" },
    ]);
    let results = turn(&client, &id, script).await;
    let texts: Vec<(&str, bool)> =
        results.iter().map(|(_, ok, text)| (text.as_str(), *ok)).collect();
    assert_eq!(texts[0], ("hello", true));
    assert_eq!(texts[1], ("two\n{\"number\":2}", true));
    assert_eq!(texts[2], ("it went wrong", false));
    assert!(texts[3].0.contains("/text is required") && !texts[3].1, "{:?}", texts[3]);
    assert_eq!(texts[4], ("this is dotted.name", true));
    let names: Vec<&str> = texts[5].0.split(' ').collect();
    assert!(names.contains(&"API_KEY") && names.contains(&"PATH"), "{names:?}");
    assert!(!names.iter().any(|name| name.starts_with("QUINTET") || name.starts_with("CARGO")));
}

#[tokio::test]
async fn a_picture_reaches_the_model() {
    let config = format!("{NO_APPROVALS}{}", stdio("fix", "", &[]));
    let world =
        World::start(&config.replace("[approval]", "inputs = [\"image\"]\n[approval]")).await;
    let client = world.client();
    let id = session_with(&world, "fix__picture").await;
    let results =
        turn(&client, &id, json!([call("fix__picture", json!({})), { "text": "seen" }])).await;
    assert!(results[0].1, "{results:?}");
    let last = world.model.calls().last().unwrap().to_string();
    assert!(last.contains("data:image/png;base64,iVBOR"), "{last}");
}

#[tokio::test]
async fn a_call_needs_approval_whatever_the_server_declares() {
    let asking = "[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n";
    let world = World::start(&format!("{asking}{}", stdio("fix", "", &[]))).await;
    let client = world.client();
    let id = session_with(&world, "fix__echo").await;
    let script = json!([call("fix__echo", json!({ "text": "hello" })), { "text": "done" }]);
    client.say(&id, script).await;
    let events = client.until(&id, |event| event.kind() == "approval_requested").await;
    let approval = &events[events.len() - 1].json["data"];
    assert!(approval["preview"].as_str().unwrap().contains("\"hello\""), "{approval}");
    client.approve(&id, approval["tool_call_id"].as_str().unwrap(), "approve").await;
    let results = outcomes(&client.until_over(&id).await);
    assert_eq!(results, [("fix__echo".into(), true, "hello".into())]);
}

#[tokio::test]
async fn a_pending_approval_survives_a_restart() {
    let asking = "[approval]\nkinds = [\"exec\"]\n[verify]\nauto = false\n";
    let mut world = World::start(&format!("{asking}{}", stdio("fix", "", &[]))).await;
    let id = session_with(&world, "fix__echo").await;
    let client = world.client();
    client
        .say(&id, json!([call("fix__echo", json!({ "text": "later" })), { "text": "done" }]))
        .await;
    let events = client.until(&id, |event| event.kind() == "approval_requested").await;
    let approval =
        events[events.len() - 1].json["data"]["tool_call_id"].as_str().unwrap().to_owned();
    world.kill();
    world.restart();
    let client = world.client();
    client.approve(&id, &approval, "approve").await;
    let results = outcomes(&client.until_over(&id).await);
    assert_eq!(results, [("fix__echo".into(), true, "later".into())]);
}

#[tokio::test]
async fn a_crashed_server_is_restarted_and_its_call_not_repeated() {
    let note = tempfile::NamedTempFile::new().unwrap();
    let note = note.path().to_str().unwrap();
    let world =
        World::start(&format!("{NO_APPROVALS}{}", stdio("fix", "", &[("NOTE", note)]))).await;
    let client = world.client();
    let id = session_with(&world, "fix__crash").await;
    let script = json!([
        call("fix__crash", json!({})),
        call("fix__echo", json!({ "text": "again" })),
        { "text": "done" },
    ]);
    let results = turn(&client, &id, script).await;
    assert!(!results[0].1 && results[0].2.contains("may have taken effect"), "{results:?}");
    assert_eq!(results[1], ("fix__echo".into(), true, "again".into()));
    let started = std::fs::read_to_string(note).unwrap();
    assert_eq!(started.lines().count(), 2, "{started}");
}

#[tokio::test]
async fn a_slow_server_delays_no_turn_and_its_tools_are_added_later() {
    let home = tempfile::tempdir().unwrap();
    let start = home.path().join("start");
    let read = format!("read = [{:?}]", home.path());
    let slow = stdio("slow", &read, &[("START", start.to_str().unwrap())]);
    let servers = stdio("fix", "", &[]) + &slow;
    let world = World::start(&format!("{NO_APPROVALS}{servers}")).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    client.say(&id, json!([{ "text": "ok" }])).await;
    assert_eq!(text(&client.until_over(&id).await), "ok");
    assert!(!offered(&world.model).iter().any(|name| name.starts_with("slow__")));
    std::fs::write(&start, "").unwrap();
    let id = session_with(&world, "slow__echo").await;
    let results =
        turn(&client, &id, json!([call("slow__echo", json!({ "text": "late" })), {}])).await;
    assert_eq!(results[0].2, "late");
}

#[tokio::test]
async fn a_call_that_takes_too_long_or_is_cancelled_ends() {
    let note = tempfile::NamedTempFile::new().unwrap();
    let path = note.path().to_str().unwrap();
    let server = stdio("fix", "timeout_seconds = 1", &[("NOTE", path)]);
    let other = stdio("calm", "", &[("NOTE", path)]);
    let world = World::start(&format!("{NO_APPROVALS}{server}{other}")).await;
    let client = world.client();
    let id = session_with(&world, "fix__wait").await;
    let results = turn(&client, &id, json!([call("fix__wait", json!({})), { "text": "on" }])).await;
    assert_eq!((results[0].1, results[0].2.as_str()), (false, "timed out after 1s"));
    let noted = async |word: &str| {
        let word = word.to_owned();
        until(&word.clone(), async || {
            std::fs::read_to_string(note.path()).unwrap().contains(&word)
        })
        .await;
    };
    noted("cancelled").await;
    std::fs::write(note.path(), "").unwrap();
    let id = session_with(&world, "calm__wait").await;
    client.say(&id, json!([call("calm__wait", json!({})), { "text": "on" }])).await;
    noted("waiting").await;
    client.post(&format!("/v1/sessions/{id}/cancel"), json!({})).await;
    client.until_over(&id).await;
    noted("cancelled").await;
}

#[tokio::test]
async fn a_changed_list_of_tools_is_used() {
    let world = World::start(&format!("{NO_APPROVALS}{}", stdio("fix", "", &[]))).await;
    let client = world.client();
    let id = session_with(&world, "fix__grow").await;
    turn(&client, &id, json!([call("fix__grow", json!({})), { "text": "done" }])).await;
    let id = session_with(&world, "fix__grown").await;
    let results =
        turn(&client, &id, json!([call("fix__grown", json!({})), { "text": "done" }])).await;
    assert_eq!(results[0].2, "this is grown");
}

#[tokio::test]
async fn many_tools_are_found_by_search() {
    let world =
        World::start(&format!("{NO_APPROVALS}{}", stdio("fix", "", &[("TOOLS", "50")]))).await;
    let client = world.client();
    let id = session_with(&world, "search_tools").await;
    let names = offered(&world.model);
    assert!(!names.iter().any(|name| name.starts_with("fix__")), "{names:?}");
    let script = json!([
        call("search_tools", json!({ "query": "birds" })),
        call("fix__number_37", json!({ "text": "tweet" })),
        call("fix__number_3", json!({ "text": "by its name" })),
        { "text": "done" },
    ]);
    let results = turn(&client, &id, script).await;
    assert!(
        results[0].2.contains("fix__number_37") && results[0].2.contains("\"text\""),
        "{results:?}"
    );
    assert_eq!((results[1].2.as_str(), results[2].2.as_str()), ("tweet", "by its name"));
    let found: Vec<String> =
        offered(&world.model).into_iter().filter(|name| name.starts_with("fix__")).collect();
    assert_eq!(found, ["fix__number_37"]);
}

#[tokio::test]
async fn no_server_process_is_left_behind() {
    for sandbox in ["sandbox = false", "sandbox = true"] {
        let mut world =
            World::start(&format!("{NO_APPROVALS}{}", stdio("fix", sandbox, &[]))).await;
        let mut pids = Vec::new();
        for end in ["term", "kill"] {
            let client = world.client();
            let id = session_with(&world, "fix__spawn").await;
            let came =
                turn(&client, &id, json!([call("fix__spawn", json!({})), { "text": "ok" }])).await;
            assert!(came[0].1, "{came:?}");
            let started = processes(&world);
            // The supervisor, the server and what it started in a session of its own.
            assert!(started.len() >= 3, "{started:?}");
            if end == "term" {
                assert!(world.terminate().success());
                assert!(!started.iter().any(is_alive), "{started:?}");
                world.restart();
            } else {
                world.kill();
            }
            pids.extend(started);
        }
        until("no process is left", async || !pids.iter().any(is_alive)).await;
    }
}

#[tokio::test]
async fn servers_of_a_workspace_start_only_after_approval() {
    let world = World::start(NO_APPROVALS).await;
    let client = world.client();
    let note = world.workspace().join("note");
    let file = world.workspace().join(".mcp.json");
    let write = |note: &Path| {
        let server = json!({ "command": "python3", "args": [fixture()], "env": { "NOTE": note } });
        std::fs::write(&file, json!({ "mcpServers": { "own": server } }).to_string()).unwrap();
    };
    write(&note);
    let id = session_with(&world, "connect_mcp_servers").await;
    let calls = world.model.calls();
    let tools = calls.last().unwrap()["tools"].as_array().unwrap().clone();
    let connect =
        tools.iter().find(|tool| tool["function"]["name"] == "connect_mcp_servers").unwrap();
    let digest = &connect["function"]["parameters"]["properties"]["digest"]["enum"][0];
    let script =
        json!([call("connect_mcp_servers", json!({ "digest": digest })), { "text": "done" }]);
    client.say(&id, script.clone()).await;
    let next_approval = async || {
        let session = id.clone();
        let events = client.until(&session, |event| event.kind() == "approval_requested").await;
        events[events.len() - 1].json["data"].clone()
    };
    let question = next_approval().await;
    let preview = question["preview"].as_str().unwrap();
    assert!(preview.contains("server.py"), "{question}");
    assert!(preview.contains("in a sandbox that may write in this workspace"), "{question}");
    assert!(!note.exists());
    client.approve(&id, question["tool_call_id"].as_str().unwrap(), "approve").await;
    let results = outcomes(&client.until_over(&id).await);
    assert!(results[0].1 && results[0].2.starts_with("own: "), "{results:?}");
    let id = session_with(&world, "own__echo").await;
    let results = turn(&client, &id, json!([call("own__echo", json!({ "text": "hi" })), {}])).await;
    assert_eq!(results[0].2, "hi");
    appears(&note).await;
    // Another definition needs another word, and the old server is gone.
    let (other, pids) = (world.workspace().join("other"), processes(&world));
    assert!(!pids.is_empty());
    write(&other);
    session_with(&world, "connect_mcp_servers").await;
    until("the old server is gone", async || !pids.iter().any(is_alive)).await;
    assert!(!other.exists());
}

/// A server over HTTP, killed when dropped.
struct HttpServer(Child, String);

impl HttpServer {
    async fn start(home: &Path, env: &[(&str, &str)]) -> Self {
        let port = home.join("port");
        let mut command = Command::new("python3");
        command.arg(fixture()).arg("http").arg(&port).envs(env.iter().copied());
        let child = spawn(&mut command);
        appears(&port).await;
        let url = format!("http://127.0.0.1:{}/mcp", std::fs::read_to_string(port).unwrap());
        Self(child, url)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn servers_of_both_protocol_versions_work_over_http() {
    for era in ["", "modern"] {
        let home = tempfile::TempDir::new().unwrap();
        let server = HttpServer::start(home.path(), &[("TOKEN", "t0ken"), ("ERA", era)]).await;
        let config = format!(
            "{NO_APPROVALS}[mcp.servers.web]\nurl = {:?}\n[mcp.servers.web.headers]\nAuthorization = \"Bearer t0ken\"\n",
            server.1
        );
        let world = World::start(&config).await;
        let client = world.client();
        let id = session_with(&world, "web__echo").await;
        let results =
            turn(&client, &id, json!([call("web__echo", json!({ "text": "hi" })), {}])).await;
        assert_eq!(results[0].2, "hi", "{era}");
    }
}

#[tokio::test]
async fn a_stateless_server_works_on_stdio() {
    let world =
        World::start(&format!("{NO_APPROVALS}{}", stdio("new", "", &[("ERA", "modern")]))).await;
    let client = world.client();
    let id = session_with(&world, "new__echo").await;
    let results = turn(&client, &id, json!([call("new__echo", json!({ "text": "hi" })), {}])).await;
    assert_eq!(results[0].2, "hi");
}

#[tokio::test]
async fn servers_can_be_managed_on_the_command_line() {
    let home = tempfile::TempDir::new().unwrap();
    let file = home.path().join("quintet.toml");
    std::fs::write(&file, format!("data_dir = {:?}\n", home.path().join("data"))).unwrap();
    let run = |verb: &str, rest: &[&str]| {
        let arguments = [&["mcp", verb, "--config", file.to_str().unwrap()], rest].concat();
        let output = quintet(&arguments).current_dir(home.path()).output().unwrap();
        let texts = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        (output.status.success(), texts.concat())
    };
    let script = fixture();
    let add = ["fix", "--env", "TOOLS=2", "--", "python3", script.to_str().unwrap()];
    let reads = format!("sandbox: network, reads {}", script.parent().unwrap().display());
    assert_eq!(run("add", &add), (true, format!("added fix ({reads})\n")));
    assert!(!run("add", &add).0);
    // An invalid definition is not written.
    let before = std::fs::read(&file).unwrap();
    for invalid in [&["w", "--url", "ftp://x"][..], &["w", "--header", "X=1", "--", "echo"]] {
        let (success, output) = run("add", invalid);
        assert!(!success && output.contains("mcp.servers.w"), "{output}");
        assert_eq!(std::fs::read(&file).unwrap(), before);
    }
    let (well, listed) = run("list", &[]);
    assert!(well && listed.starts_with("fix ") && !listed.contains("TOOLS"), "{listed}");
    assert!(listed.contains(&reads), "{listed}");
    let (well, tested) = run("test", &["fix"]);
    assert!(well && tested.contains(&format!("fixture 1: 13 tools\n{reads}\n")), "{tested}");
    assert!(tested.contains("left out: bad_schema: "), "{tested}");
    let web = HttpServer::start(home.path(), &[("TOKEN", "t0ken")]).await;
    assert!(run("add", &["web", "--url", &web.1]).0);
    let (success, tested) = run("test", &["web"]);
    assert!(!success && tested.contains("needs a login: quintet mcp login web"), "{tested}");
    assert!(run("add", &["none", "--", "no-such-program-here"]).0);
    let (success, tested) = run("test", &["none"]);
    assert!(!success && tested.contains("exit code 127"), "{tested}");
    assert_eq!(run("remove", &["fix"]), (true, String::new()));
    assert!(!run("list", &[]).1.contains("fix"));
    assert!(run("remove", &["fix"]).1.contains("there is no MCP server fix"));
}
