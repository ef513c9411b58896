//! Tests of which peers the daemon answers, at every listener.

mod answers;

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, getrlimit, getuid, setrlimit};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::http::StatusCode;

use crate::daemon::World;

const NO_APPROVALS: &str = "[approval]\nkinds = []\n[verify]\nauto = false\n";
/// Timeout after which a client counts as refused.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// A user id that is not that of the tests.
const NOBODY: u32 = 65534;

/// Every TCP listener, and a path that answers allowed peers.
fn listeners(world: &World) -> [(String, &'static str); 6] {
    [
        (world.base().to_owned(), "/healthz"),
        (world.jarvis().to_owned(), "/health"),
        (world.agent().replace("ws://", "http://"), "/"),
        (world.agent_health().to_owned(), "/health"),
        (world.windie().to_owned(), "/health"),
        (world.openai_address().to_owned(), "/v1/models"),
    ]
}

/// The status of a request with only these headers.
async fn status(base: &str, path: &str, headers: &[&str]) -> u16 {
    let mut stream = TcpStream::connect(base.trim_start_matches("http://")).await.unwrap();
    let mut request = format!("GET {path} HTTP/1.1\r\nConnection: close\r\n");
    for header in headers {
        request.push_str(&format!("{header}\r\n"));
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    std::str::from_utf8(&answer[9..]).unwrap().parse().unwrap()
}

fn is_refusal(status: u16) -> bool {
    [400, 401, 403].contains(&status)
}

/// The output of `curl`, run by this user.
fn curl(arguments: &[&str], uid: u32) -> String {
    let mut command = Command::new("curl");
    command.args(["-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}"]);
    let output = command.args(arguments).uid(uid).current_dir("/").output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn another_user_is_refused_everywhere() {
    let own = getuid().as_raw();
    if own != 0 {
        return eprintln!("SKIPPED: only root can run a client as another user");
    }
    let world = World::start("").await;
    for (base, path) in listeners(&world) {
        let url = format!("{base}{path}");
        assert_ne!(curl(&[&url], own), "403", "{url}");
        assert_eq!(curl(&[&url], NOBODY), "403", "{url}");
    }
    // A valid token is as good as being the user.
    let world = World::start(&format!("{NO_APPROVALS}[auth]\ntoken = \"t0ken\"\n")).await;
    let url = format!("{}/healthz", world.base());
    assert_eq!(curl(&[&url], NOBODY), "401");
    assert_eq!(curl(&["-H", "Authorization: Bearer t0ken", &url], NOBODY), "200");
}

#[tokio::test]
async fn foreign_origins_and_hosts_are_refused_everywhere() {
    let world =
        World::start(&format!("{NO_APPROVALS}[auth]\norigins = [\"http://localhost:5173\"]\n"))
            .await;
    for (base, path) in listeners(&world) {
        let own = format!("Host: {}", base.trim_start_matches("http://"));
        assert!(!is_refusal(status(&base, "/healthz", &[&own]).await) || path == "/", "{base}");
        for origin in
            ["http://localhost:3000", "https://localhost:5173", "http://localhost", "null"]
        {
            let page = format!("Origin: {origin}");
            assert_eq!(status(&base, path, &[&own, &page]).await, 403, "{base} {origin}");
        }
        let page = status(&base, path, &[&own, "Origin: http://localhost:5173"]).await;
        assert_eq!(page, status(&base, path, &[&own]).await, "{base}");
        assert_eq!(status(&base, path, &["Host: evil.example"]).await, 403, "{base}");
        assert_eq!(status(&base, path, &[&own, &own]).await, 400, "{base}");
        assert_eq!(status(&base, path, &[&own, "Host: evil.example"]).await, 400, "{base}");
        assert_eq!(status(&base, path, &[]).await, 403, "{base}");
    }
}

#[tokio::test]
async fn a_configured_origin_is_allowed() {
    let world = World::start(&format!(
        "{NO_APPROVALS}[auth]\ntoken = \"t\"\norigins = [\"http://localhost:5173\"]\n"
    ))
    .await;
    let client = world.client();
    let page = |method: reqwest::Method| {
        client.request(method, "/v1/sessions").header("origin", "http://localhost:5173")
    };
    let preflight = page(reqwest::Method::OPTIONS).header("access-control-request-method", "GET");
    let preflight = preflight.send().await.unwrap();
    assert_eq!(preflight.status(), 204);
    assert_eq!(page(reqwest::Method::GET).send().await.unwrap().status(), 401);
    let listed = page(reqwest::Method::GET).bearer_auth("t").send().await.unwrap();
    assert_eq!(listed.status(), 200);
    for response in [&preflight, &listed] {
        let origin = &response.headers()["access-control-allow-origin"];
        assert_eq!(origin, "http://localhost:5173");
        assert_eq!(response.headers()["vary"], "Origin");
    }
}

#[tokio::test]
async fn a_token_is_required_everywhere() {
    let config = format!(
        "{NO_APPROVALS}[auth]\ntoken = \"t0ken\"\n[harness]\nauth_token = \"own\"\n[agent]\nauth_token = \"own\"\n"
    );
    let world = World::start(&config).await;
    for (base, path) in listeners(&world) {
        let host = format!("Host: {}", base.trim_start_matches("http://"));
        let with = async |path: &str, more: &str| status(&base, path, &[&host, more]).await;
        assert_eq!(with(path, "X-None: 1").await, 401, "{base}");
        assert_eq!(with(path, "Authorization: Bearer wrong").await, 401, "{base}");
        assert_ne!(with(path, "Authorization: Bearer t0ken").await, 401, "{base}");
        let takes_own = base == world.base() || world.agent().ends_with(&base["http://".len()..]);
        let own = with(path, "Authorization: Bearer own").await;
        assert_eq!(own != 401, takes_own, "{base} {own}");
        assert_ne!(with(&format!("{path}?access_token=t0ken"), "X-None: 1").await, 401, "{base}");
    }
    for (address, open) in
        [(world.agent().to_owned(), false), (world.windie().replace("http", "ws"), false)]
            .into_iter()
            .flat_map(|(address, _)| {
                [
                    (format!("{address}/ws"), false),
                    (format!("{address}/ws?access_token=t0ken"), true),
                ]
            })
    {
        match tokio_tungstenite::connect_async(&address).await {
            Ok(_) => assert!(open, "{address}"),
            Err(tokio_tungstenite::tungstenite::Error::Http(response)) => {
                assert!(!open && response.status() == StatusCode::UNAUTHORIZED, "{address}");
            }
            Err(error) => panic!("{address}: {error}"),
        }
    }
}

#[tokio::test]
async fn existing_install_tokens_stay_valid() {
    let config =
        format!("{NO_APPROVALS}[auth]\ntoken = \"t0ken\"\n[windie]\ninstall_auth = true\n");
    let world = World::start(&config).await;
    let client = crate::client::Client::new(world.windie());
    let register = || client.request(reqwest::Method::POST, "/api/install/register").body("{}");
    assert_eq!(register().send().await.unwrap().status(), 401);
    let registered = register().bearer_auth("t0ken").send().await.unwrap();
    assert_eq!(registered.status(), 200);
    let registered: Value = serde_json::from_str(&registered.text().await.unwrap()).unwrap();
    let token = registered["install_token"].as_str().unwrap();
    let me = |token: &str| {
        client.request(reqwest::Method::GET, "/api/install/me").bearer_auth(token).send()
    };
    assert_eq!(me(token).await.unwrap().status(), 200);
    assert_eq!(me("wnd_install_x").await.unwrap().status(), 401);
    let health = client.request(reqwest::Method::GET, "/health").bearer_auth(token);
    assert_eq!(health.send().await.unwrap().status(), 401, "the health check is protected, too");
}

/// The output of a command of the agent.
async fn run(world: &World, command: &str) -> String {
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let call = json!({ "name": "shell", "args": { "command": command } });
    client.say(&id, json!([{ "tools": [call] }, { "text": "done" }])).await;
    let events = client.until_over(&id).await;
    let completed = events.iter().find(|event| event.kind() == "tool_call_completed").unwrap();
    completed.json["data"].to_string()
}

#[tokio::test]
async fn a_command_cannot_call_the_daemon_that_runs_it() {
    for sandbox in ["network = true", "mode = \"off\""] {
        let world = World::start(&format!("{NO_APPROVALS}[sandbox]\n{sandbox}\n")).await;
        for (base, path) in listeners(&world) {
            let url = format!("{base}{path}");
            let curl = format!("curl -s -m 20 -o /dev/null -w 'said %{{http_code}}.' {url}");
            for command in [
                curl.clone(),
                format!(
                    "(setsid {curl} > said &) ; until [ -s said ]; do sleep 0.05; done; cat said; rm said"
                ),
                format!("sh -c \"exec {curl}\""),
            ] {
                let told = run(&world, &command).await;
                assert!(told.contains("said 403."), "{sandbox} {command}: {told}");
            }
            // Other requests are answered meanwhile.
            assert_ne!(self::curl(&[&url], getuid().as_raw()), "403", "{url}");
        }
        // The Unix socket refuses it, too.
        let socket = world.terminal();
        let talk = format!(
            "curl -s -m 20 --http0.9 --unix-socket {} http://x/ | head -c 200; echo over",
            socket.display()
        );
        let told = run(&world, &talk).await;
        assert!(told.contains("over") && !told.contains("jsonrpc"), "{sandbox}: {told}");
    }
}

#[tokio::test]
async fn other_clients_are_answered_while_a_command_runs() {
    let world = World::start(&format!("{NO_APPROVALS}[sandbox]\nnetwork = true\n")).await;
    let client = world.client();
    let id = client.create(world.workspace()).await;
    let command = "touch began; while [ ! -e stop ]; do sleep 0.01; done";
    let call = json!({ "name": "shell", "args": { "command": command } });
    client.say(&id, json!([{ "tools": [call] }, { "text": "done" }])).await;
    crate::daemon::appears(&world.workspace().join("began")).await;
    for (base, path) in listeners(&world) {
        let url = format!("{base}{path}");
        assert_ne!(curl(&[&url], getuid().as_raw()), "403", "{url}");
    }
    std::fs::write(world.workspace().join("stop"), "").unwrap();
    client.until_over(&id).await;
}

/// Raises the open-files limit of this process and of daemons that it starts.
pub(crate) fn raise_open_files_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum.or(Some(1 << 20));
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[tokio::test]
async fn idle_connections_do_not_block_new_ones() {
    const IDLE: usize = 2000;
    raise_open_files_limit();
    let world = World::start("").await;
    let address = world.base().trim_start_matches("http://").to_owned();
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(TcpStream::connect(&address).await.unwrap());
    }
    for (base, path) in listeners(&world) {
        let host = format!("Host: {}", base.trim_start_matches("http://"));
        let headers = [host.as_str()];
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, status(&base, path, &headers)).await;
        assert!(!is_refusal(answered.unwrap()) || path == "/", "{base}");
    }
    // The oldest connections were closed.
    let (first, last) = (&mut idle[0].read_u8().await, &mut idle[IDLE - 1]);
    assert!(first.is_err());
    last.write_all(format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    assert_eq!(last.read_u8().await.unwrap(), b'H');
}

#[tokio::test]
async fn too_long_headers_are_refused() {
    let world = World::start("").await;
    for (base, path) in listeners(&world) {
        let host = format!("Host: {}", base.trim_start_matches("http://"));
        let long = format!("X-Long: {}", "a".repeat(200 * 1024));
        assert_eq!(status(&base, path, &[&host, &long]).await, 431, "{base}");
    }
}
