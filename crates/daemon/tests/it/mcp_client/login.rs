//! Logins at MCP servers, with a real authorization server and a simulated browser.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use reqwest::{Method, redirect};
use serde_json::{Value, json};

use super::{NO_APPROVALS, call, session_with, turn};
use crate::client::Client;
use crate::daemon::{World, appears, quintet, spawn};

/// An MCP server that requires a login, with its authorization server.
struct OAuthServer {
    child: Child,
    url: String,
    issuer: String,
}

impl OAuthServer {
    async fn start(home: &Path, env: &[(&str, &str)]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/oauth_server.py");
        let ports = home.join("ports");
        let mut command = Command::new("python3");
        command.arg("-B").arg(script).arg(&ports).envs(env.iter().copied());
        let child = spawn(&mut command);
        appears(&ports).await;
        let ports = std::fs::read_to_string(ports).unwrap();
        let (resource, issuer) = ports.split_once(' ').unwrap();
        let url = format!("http://127.0.0.1:{resource}/mcp");
        Self { child, url, issuer: format!("http://127.0.0.1:{issuer}") }
    }

    fn config(&self, more: &str) -> String {
        format!("{NO_APPROVALS}[mcp.servers.web]\nurl = {:?}\n{more}", self.url)
    }

    async fn post(&self, path: &str) {
        assert_eq!(Client::new(&self.issuer).post(path, json!({})).await.0, 200);
    }

    /// The grants so far.
    async fn granted(&self) -> Vec<String> {
        let (_, log) = Client::new(&self.issuer).get("/test/log").await;
        serde_json::from_value(log).unwrap()
    }
}

impl Drop for OAuthServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `quintet mcp` with a configuration.
struct Shell(PathBuf);

impl Shell {
    fn new(home: &Path, server: &OAuthServer, more: &str) -> Self {
        let file = home.join("quintet.toml");
        let data = format!("data_dir = {:?}\n", home.join("data"));
        std::fs::write(&file, data + &server.config(more)).unwrap();
        Self(file)
    }

    fn command(&self, verb: &str, rest: &[&str]) -> Command {
        let arguments = [&["mcp", verb, "--config", self.0.to_str().unwrap()], rest].concat();
        let mut command = quintet(&arguments);
        command.current_dir(self.0.parent().unwrap());
        command
    }

    fn run(&self, verb: &str, rest: &[&str]) -> (bool, String) {
        let output = self.command(verb, rest).output().unwrap();
        let text = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        (output.status.success(), text.concat())
    }

    /// Logs in; `browse` opens the address, and may return text to paste.
    async fn login(
        &self,
        rest: &[&str],
        browse: impl AsyncFnOnce(String) -> Option<String>,
    ) -> (bool, String) {
        let mut command = self.command("login", &[&["web", "--no-browser"], rest].concat());
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        if lines.next().is_some() {
            let paste = browse(lines.next().unwrap().unwrap()).await;
            if let Some(address) = paste {
                writeln!(child.stdin.as_mut().unwrap(), "{address}").unwrap();
            }
        }
        let mut text: String = lines.map(|line| line.unwrap() + "\n").collect();
        child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        (child.wait().unwrap().success(), text)
    }
}

/// Follows the address, as a browser does.
async fn browser(address: String) -> Option<String> {
    let page = Client::new("").request(Method::GET, &address).send().await.unwrap();
    assert!(page.status().is_success(), "{page:?}");
    None
}

/// The content of all files in a folder.
fn all_files(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                all_files(&path)
            } else {
                String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned()
            }
        })
        .collect()
}

#[tokio::test]
async fn logging_in_and_out() {
    let home = tempfile::TempDir::new().unwrap();
    let server = OAuthServer::start(home.path(), &[]).await;
    let shell = Shell::new(home.path(), &server, "");
    let (success, output) = shell.run("test", &["web"]);
    assert!(!success && output.contains("web: needs a login: quintet mcp login web"), "{output}");
    let (_, output) = shell.run("list", &[]);
    assert!(output.contains("(needs a login: quintet mcp login web)"), "{output}");
    let (success, output) = shell.login(&[], browser).await;
    assert!(success && output.contains("logged in at http://127.0.0.1:"), "{output}");
    let (success, output) = shell.run("test", &["web"]);
    assert!(success && output.contains("fixture 1: 11 tools"), "{output}");
    assert!(shell.run("list", &[]).1.contains("(logged in)"));
    let stored = all_files(&home.path().join("data"));
    assert!(
        stored.contains("sealed:1:") && !stored.contains("access-") && !stored.contains("refresh-")
    );
    assert!(shell.run("logout", &["web"]).0);
    let (success, output) = shell.run("logout", &["web"]);
    assert!(!success && output.contains("there is no login for web"), "{output}");
    assert!(shell.run("test", &["web"]).1.contains("needs a login"));
}

#[tokio::test]
async fn a_login_on_another_machine_is_pasted_and_others_are_refused() {
    let home = tempfile::TempDir::new().unwrap();
    let server = OAuthServer::start(home.path(), &[]).await;
    let shell = Shell::new(home.path(), &server, "");
    let _tls = Client::new("");
    let client = reqwest::Client::builder().redirect(redirect::Policy::none()).build().unwrap();
    let (success, output) = shell
        .login(&[], async |address| {
            let answer = client.get(address).send().await.unwrap();
            let ends = answer.headers()["location"].to_str().unwrap().to_owned();
            // A process that guesses the port cannot complete the login with another code.
            let (redirect, _) = ends.split_once('?').unwrap();
            for wrong in ["?code=x&state=wrong", "?error=access_denied", ""] {
                let page = client.get(format!("{redirect}{wrong}")).send().await.unwrap();
                assert_eq!(page.status(), 404);
            }
            Some(format!("http://127.0.0.1:1/callback?code=x&state=wrong\n{ends}"))
        })
        .await;
    assert!(success && output.contains("this is not the address"), "{output}");
    assert!(shell.run("test", &["web"]).0);
}

#[tokio::test]
async fn a_denied_login_is_reported() {
    let home = tempfile::TempDir::new().unwrap();
    let server = OAuthServer::start(home.path(), &[("DENY", "1")]).await;
    let shell = Shell::new(home.path(), &server, "");
    let (success, output) = shell.login(&[], browser).await;
    assert!(!success && output.contains("access_denied (the person said no)"), "{output}");
}

#[tokio::test]
async fn a_registered_client_logs_in_with_its_secret() {
    let home = tempfile::TempDir::new().unwrap();
    let server = OAuthServer::start(home.path(), &[("REGISTER", "no")]).await;
    let shell = Shell::new(home.path(), &server, "");
    let (success, output) = shell.login(&[], browser).await;
    assert!(!success && output.contains("set `oauth.client_id`"), "{output}");
    let client = "[mcp.servers.web.oauth]\nclient_id = \"fixed\"\nclient_secret = \"s3cret\"\n";
    let shell = Shell::new(home.path(), &server, client);
    assert!(shell.login(&[], browser).await.0);
    server.post("/test/expire").await;
    let (success, output) = shell.run("test", &["web"]);
    assert!(success, "{output}");
    assert_eq!(server.granted().await, ["authorization_code", "refresh_token"]);
}

#[tokio::test]
async fn a_running_daemon_uses_and_renews_a_login() {
    for anonymous in ["", "1"] {
        let home = tempfile::TempDir::new().unwrap();
        let server = OAuthServer::start(home.path(), &[("ANONYMOUS", anonymous)]).await;
        let world = World::start(&server.config("")).await;
        let shell = Shell(world.home.path().join("quintet.toml"));
        let client = world.client();
        if anonymous.is_empty() {
            assert!(shell.login(&[], browser).await.0);
        }
        let id = session_with(&world, "web__echo").await;
        let echo = |text: &str| json!([call("web__echo", json!({ "text": text })), {}]);
        let call_result = async |script: Value| turn(&client, &id, script).await.remove(0);
        let needed = "the MCP server web: needs a login: quintet mcp login web";
        if !anonymous.is_empty() {
            assert_eq!(call_result(echo("hi")).await, ("web__echo".into(), false, needed.into()));
            assert!(shell.login(&[], browser).await.0);
            wait_until_connected(&call_result, &echo).await;
        }
        assert_eq!(call_result(echo("one")).await.2, "one");
        server.post("/test/expire").await;
        assert_eq!(call_result(echo("two")).await.2, "two");
        assert_eq!(server.granted().await, ["authorization_code", "refresh_token"]);
        server.post("/test/revoke").await;
        assert_eq!(call_result(echo("three")).await.2, needed);
        assert!(shell.login(&[], browser).await.0);
        wait_until_connected(&call_result, &echo).await;
        assert!(shell.run("logout", &["web"]).0);
        assert_eq!(call_result(echo("four")).await.2, needed);
    }
}

/// Waits until the server is connected again after a login.
async fn wait_until_connected(
    call_result: &impl AsyncFn(Value) -> (String, bool, String),
    echo: &impl Fn(&str) -> Value,
) {
    crate::daemon::until("the login is used", async || call_result(echo("hi")).await.1).await;
}
