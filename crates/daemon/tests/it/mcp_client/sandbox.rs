//! What servers can do in their sandbox, and what they cannot.

use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use super::{NO_APPROVALS, call, fixture, session_with, stdio, turn};
use crate::daemon::{World, quintet, until};

/// What a server is able to do.
struct Attempts {
    world: World,
    session: String,
}

impl Attempts {
    /// A server of the configuration with these lines.
    async fn configured(more: &str) -> Self {
        let server = stdio("fix", more, &[("ATTEMPTS", "1")]);
        let world = World::start(&format!("{NO_APPROVALS}{server}")).await;
        let session = session_with(&world, "fix__attempt").await;
        Self { world, session }
    }

    /// What the server says, and whether it succeeded.
    async fn attempt(&self, what: &str, at: &str) -> (bool, String) {
        let script = json!([call("fix__attempt", json!({ "what": what, "at": at })), {}]);
        let mut came = turn(&self.world.client(), &self.session, script).await;
        let (_, is_well, said) = came.remove(0);
        (is_well, said)
    }

    #[track_caller]
    fn check(&self, (is_well, said): (bool, String), expected: bool) {
        assert_eq!(is_well, expected, "{said}");
    }
}

fn secret() -> TempDir {
    let home = TempDir::new().unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    std::fs::write(home.path().join(".ssh/id"), "secret").unwrap();
    home
}

#[tokio::test]
async fn a_server_reaches_only_what_it_was_given() {
    let (home, notes, more) = (secret(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let at = |folder: &TempDir, name: &str| folder.path().join(name).display().to_string();
    for is_free in [true, false] {
        let lines = if is_free {
            "sandbox = false".to_owned()
        } else {
            format!("read = [{:?}]\nwrite = [{:?}]", more.path(), notes.path())
        };
        let fix = Attempts::configured(&lines).await;
        let daemon = format!("/proc/{}/environ", fix.world.pid().as_raw_pid());
        let file = fix.world.home.path().join("quintet.toml");
        let database = fix.world.data_dir().join("quintet.db");
        for (what, at) in [
            ("read", at(&home, ".ssh/id")),
            ("write", at(&home, "new")),
            ("write", at(&more, "new")),
            ("read", file.display().to_string()),
            ("read", database.display().to_string()),
            ("read", daemon),
            ("unix", fix.world.terminal().display().to_string()),
        ] {
            fix.check(fix.attempt(what, &at).await, is_free);
        }
        fix.check(fix.attempt("write", &at(&notes, "new")).await, true);
        fix.check(fix.attempt("read", &at(&notes, "new")).await, true);
        std::fs::write(more.path().join("readable"), "").unwrap();
        fix.check(fix.attempt("read", &at(&more, "readable")).await, true);
    }
}

#[tokio::test]
async fn no_server_is_answered_by_the_daemon_and_none_needs_the_network() {
    for (lines, connects) in [("sandbox = false", true), ("", true), ("network = false", false)] {
        let fix = Attempts::configured(lines).await;
        let address = fix.world.base().trim_start_matches("http://").to_owned();
        let (is_well, said) = fix.attempt("tcp", &address).await;
        assert_eq!(is_well, connects, "{lines}: {said}");
        // Whoever gets through is turned away.
        assert!(!is_well || said.contains(" 403 "), "{lines}: {said}");
    }
}

#[tokio::test]
async fn a_server_has_a_home_of_its_own_that_stays() {
    let mut fix = Attempts::configured("").await;
    let kept = fix.world.data_dir().join("mcp-servers/fix/state");
    let (is_well, said) = fix.attempt("write", "state").await;
    assert!(is_well && Path::new(&said) == kept.canonicalize().unwrap(), "{said}");
    assert!(fix.world.terminate().success());
    fix.world.restart();
    fix.session = session_with(&fix.world, "fix__attempt").await;
    fix.check(fix.attempt("read", kept.to_str().unwrap()).await, true);
}

#[tokio::test]
async fn a_workspace_s_server_may_write_there_and_nowhere_else() {
    let world = World::start(NO_APPROVALS).await;
    let server = json!({ "command": "python3", "args": [fixture()], "env": { "ATTEMPTS": "1" } });
    let file = json!({ "mcpServers": { "fix": server } }).to_string();
    std::fs::write(world.workspace().join(".mcp.json"), file).unwrap();
    let config = world.home.path().join("quintet.toml");
    let allow = ["mcp", "allow", "--config", config.to_str().unwrap()];
    assert!(quintet(&allow).current_dir(world.workspace()).output().unwrap().status.success());
    let session = session_with(&world, "fix__attempt").await;
    let fix = Attempts { world, session };
    fix.check(fix.attempt("write", "new").await, true);
    assert!(fix.world.workspace().join("new").exists());
    // In a `/tmp` of its own the server may write as well.
    fix.attempt("write", "../new").await;
    assert!(!fix.world.home.path().join("new").exists());
    fix.check(fix.attempt("read", "../quintet.toml").await, false);
}

#[tokio::test]
async fn an_argument_that_names_a_folder_opens_it() {
    let (notes, home) = (TempDir::new().unwrap(), secret());
    let more =
        format!("command = [\"python3\", {:?}, \"--root={}\"]", fixture(), notes.path().display());
    let server = stdio("fix", "", &[("ATTEMPTS", "1")]);
    let (before, rest) = server.split_once("command = ").unwrap();
    let rest = rest.split_once('\n').unwrap().1;
    let world = World::start(&format!("{NO_APPROVALS}{before}{more}\n{rest}")).await;
    let session = session_with(&world, "fix__attempt").await;
    let fix = Attempts { world, session };
    let at = |folder: &TempDir| folder.path().join("new").display().to_string();
    fix.check(fix.attempt("write", &at(&notes)).await, true);
    fix.check(fix.attempt("write", &at(&home)).await, false);
}

#[tokio::test]
async fn a_server_that_fails_names_the_setting_that_allows_more() {
    let home = secret();
    let file = home.path().join("quintet.toml");
    let secret = home.path().join(".ssh/id");
    let test = |server: &str| {
        let text = format!("data_dir = {:?}\n[mcp.servers.x]\n{server}", home.path().join("data"));
        std::fs::write(&file, text).unwrap();
        let output = quintet(&["mcp", "test", "x", "--config", file.to_str().unwrap()]).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    let reads = format!("command = [\"sh\", \"-c\", \"cat {}; exit 3\"]\n", secret.display());
    let said = test(&reads);
    let hint = format!("`mcp.servers.x.read = [\"{}\"]` allows reading it", secret.display());
    assert!(said.contains("ended with exit code 3 before it answered; it wrote: cat: "), "{said}");
    assert!(said.contains(&hint), "{said}");
    let said = test(&format!("{reads}sandbox = false"));
    assert!(said.contains("exit code 3") && !said.contains("allows"), "{said}");
    let said = test("command = [\"sh\", \"-c\", \"exit 4\"]");
    assert!(
        said.contains("exit code 4") && said.contains("`mcp.servers.x.sandbox = false`"),
        "{said}"
    );
    // Nothing opens the daemon's own data.
    std::fs::create_dir_all(home.path().join("data")).unwrap();
    let said = test(&format!("command = [\"cat\", {:?}]", home.path().join("data")));
    assert!(said.contains("not started: ") && said.contains("the daemon's own data"), "{said}");
    let said = test("command = [\"cat\"]\nread = [\"/no/such/folder\"]");
    assert!(said.contains("/no/such/folder: No such file or directory"), "{said}");
}

#[tokio::test]
async fn a_killed_supervisor_leaves_nothing() {
    let fix = Attempts::configured("").await;
    let pids = super::processes(&fix.world);
    let scratch = |pid: &Pid| {
        let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_pid())).unwrap();
        let line = String::from_utf8(line).unwrap();
        let words: Vec<&str> = line.split('\0').collect();
        let option = words.iter().position(|word| *word == "--scratch")?;
        Some((*pid, PathBuf::from(words[option + 1])))
    };
    let (supervisor, scratch) = pids.iter().find_map(scratch).unwrap();
    assert!(scratch.is_dir());
    kill_process(supervisor, Signal::KILL).unwrap();
    until("the folder and the processes are gone", async || {
        !scratch.exists() && !pids.iter().any(super::is_alive)
    })
    .await;
}
