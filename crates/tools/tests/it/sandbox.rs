//! What goes on working in the sandbox, and what its settings do.

use quintet_kernel::tool::{Ending, Risk};
use quintet_tools::sandbox::{Limits, Mode, Sandbox, probe, report};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bench::{Bench, SUPERVISOR, text};

async fn run(bench: &Bench, command: &str) -> Value {
    crate::bench::json(&bench.run("shell", json!({ "command": command })).await)
}

/// Runs a command in the sandbox; it must succeed and say this.
async fn check(command: &str, expected: &str) {
    let bench = Bench::new();
    let report = run(&bench, command).await;
    assert_eq!(
        (&report["exit_code"], &report["stdout"]),
        (&json!(0), &json!(expected)),
        "{report}"
    );
}

#[tokio::test]
async fn everyday_commands_work() {
    for (command, expected) in [
        ("sleep 0.01 & wait; echo a b | tr ' ' '\\n' | sort -r", "b\na\n"),
        ("cat <(echo hi) /dev/null > /dev/stdout; echo oh > /dev/stderr", "hi\n"),
        ("set -m; sleep 100 & jobs -p > pid; kill %1; wait; head -c 3 /dev/zero | wc -c", "3\n"),
        (
            "f=$(mktemp) && echo hi > $f && cat $f && mkdir -p a/b && mv $f a/b/c && ls a/b",
            "hi\nc\n",
        ),
        ("mkdir d && ln -s d l && touch l/x && ln l/x y && cp -r d e && rm -r d l && ls", "e\ny\n"),
        ("sort --version > /dev/null && seq 200000 | sort -S 64k | tail -1", "99999\n"),
        ("printf 'all: a\\na:\\n\\t@echo made > a; cat a\\n' > Makefile; make -s -j4", "made\n"),
    ] {
        check(command, expected).await;
    }
}

#[tokio::test]
async fn the_tools_of_developers_work() {
    let home = std::env::home_dir().unwrap();
    let c = "#include <stdio.h>\\nint main(void){puts(\"c\");}\\n";
    for (tool, command, expected) in [
        (
            "git",
            "git init -q . && touch x && git add . && git -c user.name=a -c user.email=a@b commit \
             -qm one && git log --format=%s && git status --short"
                .to_owned(),
            "one\n",
        ),
        ("cc", format!("printf '{c}' > c.c && cc -pthread -o c c.c && ./c"), "c\n"),
        (
            "python3",
            "python3 -c 'import threading, multiprocessing, tempfile, subprocess\n\
             t = threading.Thread(target=print, args=[1]); t.start(); t.join()\n\
             multiprocessing.Lock()\nopen(tempfile.mkstemp()[1])\nsubprocess.run([\"echo\", \"2\"])'"
                .to_owned(),
            "1\n2\n",
        ),
        (
            "node",
            "node -e 'require(\"child_process\").execSync(\"true\"); new WebAssembly.Memory({initial:1}); \
             require(\"fs\").readFile(\".\", () => console.log(3))'"
                .to_owned(),
            "3\n",
        ),
        (
            "cargo",
            "cargo init -q --vcs none --name x . && cargo run -q --offline".to_owned(),
            "Hello, world!\n",
        ),
    ] {
        let bench = Bench::new();
        let home = format!("export HOME={}; ", home.display());
        let is_here = run(&bench, &format!("{home} {tool} --version")).await;
        if is_here["exit_code"] == 127 {
            eprintln!("NOT CHECKED, there is no {tool} here");
            continue;
        }
        let unbuffered = "export PYTHONUNBUFFERED=1; ";
        check(&format!("{home}{unbuffered}{command}"), expected).await;
    }
}

#[tokio::test]
async fn a_command_has_a_scratch_directory_of_its_own() {
    let bench = Bench::new();
    let name = format!("quintet-test-{}", std::process::id());
    let command = format!(
        "echo x > $TMPDIR/{name} && mkdir $TMPDIR/y && chmod 0 $TMPDIR/y && ls $TMPDIR/{name} && [ ! -e $TMPDIR/usr ]"
    );
    assert_eq!(run(&bench, &command).await["exit_code"], 0);
    assert!(!std::path::Path::new("/tmp").join(&name).exists());
    assert_ne!(run(&bench, &format!("ls $TMPDIR/{name}")).await["exit_code"], 0);
}

#[tokio::test]
async fn servers_on_localhost_pipes_and_terminals_work() {
    if !report(SUPERVISOR.as_ref()).namespaces {
        eprintln!("NOT CHECKED, there are no namespaces here");
        return;
    }
    let serve = "python3 -c 'import http.server, threading, urllib.request\n\
        s = http.server.HTTPServer((\"127.0.0.1\", 0), http.server.SimpleHTTPRequestHandler)\n\
        threading.Thread(target=s.serve_forever, daemon=True).start()\n\
        print(urllib.request.urlopen(f\"http://localhost:{s.server_port}/\").status)'";
    check(serve, "200\n").await;
    let workers = "python3 -c 'import multiprocessing as m\n\
        print(m.get_context(\"forkserver\").Pool(2).map(abs, [-1, -2]))'";
    check(workers, "[1, 2]\n").await;
    let socket = "python3 -c 'import socket\n\
        a = socket.socket(socket.AF_UNIX); a.bind(\"s\"); a.listen(); b = socket.socket(socket.AF_UNIX)\n\
        b.connect(\"s\"); print(1)'";
    check(socket, "1\n").await;
    check("python3 -c 'import pty, os; print(os.isatty(pty.openpty()[1]))'", "True\n").await;
    check(
        "echo x > /dev/shm/y && cat /dev/shm/y; echo ~ > /dev/null; [ $$ -lt 10 ] && echo few",
        "x\nfew\n",
    )
    .await;
    check("mkdir -p ~/.config/x 2> /dev/null || mkdir -p $HOME; npm config get cache > /dev/null 2>&1; echo $GOCACHE | grep -c sandbox", "1\n").await;
}

#[tokio::test]
async fn what_the_sandbox_stopped_is_named_with_its_setting() {
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("x"), "").unwrap();
    let bench = Bench::new();
    let told = run(&bench, &format!("cat {}/x", outside.path().display())).await;
    let hint = told["sandbox"][0].as_str().unwrap_or_default();
    assert!(hint.contains("`sandbox.read = [") && hint.contains("/x"), "{told}");
    let told = run(&bench, "touch /usr/quintet-test").await;
    let hint = told["sandbox"][0].as_str().unwrap_or_default();
    assert!(hint.contains("`sandbox.write = [\"/usr\"]`"), "{told}");
    let told = run(&bench, "echo 'Could not resolve host: x' >&2; exit 6").await;
    assert_eq!(
        told["sandbox"][0],
        "the sandbox has no network: `sandbox.network = true` allows it"
    );
}

#[tokio::test]
async fn limits_hold_and_cannot_be_lifted() {
    let limits = Limits { open_files: 99, cpu_seconds: 77, ..Limits::default() };
    let bench = Bench::in_sandbox(Sandbox { limits, ..Sandbox::default() });
    let report = run(&bench, "ulimit -Hn; ulimit -Ht; ulimit -Hc; ulimit -Hd; ulimit -Hf").await;
    assert_eq!(report["stdout"], "99\n77\n0\n33554432\n4194304\n");
    assert_ne!(run(&bench, "ulimit -n 100").await["exit_code"], 0);
    let report = run(&bench, "ulimit -Hu").await;
    let processes: u64 = report["stdout"].as_str().unwrap().trim().parse().unwrap();
    assert!(processes <= 4096, "{processes}");
}

#[tokio::test]
async fn a_fork_bomb_is_gone_when_its_time_is_up() {
    let bench = Bench::new();
    let bomb = "bomb() { echo pid=$BASHPID; sleep 0.4; bomb & bomb & wait; }; bomb";
    let output = bench.run("shell", json!({ "command": bomb, "timeout_seconds": 3 })).await;
    assert_eq!(crate::bench::json(&output)["exit_code"], 124);
    let heard = bench.heard();
    assert!(heard.lines().count() > 1, "{heard}");
    assert!(
        !heard.lines().filter_map(|line| line.strip_prefix("pid=")).any(|pid| bench.lives(pid)),
        "{heard}"
    );
    let here = bench.path().canonicalize().unwrap();
    let is_here = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here)
    };
    assert!(!std::fs::read_dir("/proc").unwrap().flatten().any(|entry| is_here(&entry)));
}

#[tokio::test]
async fn what_is_allowed_besides_is_allowed() {
    let (read, write) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    std::fs::write(read.path().join("x"), "hi\n").unwrap();
    let bench = Bench::in_sandbox(Sandbox {
        extra_read: vec![read.path().to_owned(), "/no/such/place".into()],
        extra_write: vec![write.path().to_owned()],
        ..Sandbox::default()
    });
    let (from, to) = (read.path().display(), write.path().display());
    assert_eq!(run(&bench, &format!("cp {from}/x {to}/y")).await["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(write.path().join("y")).unwrap(), "hi\n");
    let code = run(&bench, &format!("touch {from}/z")).await["exit_code"].clone();
    assert_eq!(code != 0, probe().landlock.is_some());
}

#[tokio::test]
async fn a_command_that_was_stopped_can_ask_for_just_what_it_needed() {
    let (read, write) =
        (TempDir::new_in("/var/tmp").unwrap(), TempDir::new_in("/var/tmp").unwrap());
    std::fs::write(read.path().join("x"), "hi\n").unwrap();
    let bench = Bench::in_sandbox(Sandbox::default());
    let (from, to) = (read.path().display().to_string(), write.path().display().to_string());
    let command = format!("cat {from}/x && touch {to}/y");
    let stopped = run(&bench, &command).await;
    assert_eq!(stopped["permissions"], json!({ "read": [format!("{from}/x")] }), "{stopped}");

    let permissions = json!({ "read": [from], "write": [to] });
    let asked = json!({ "command": command, "permissions": permissions });
    let assessment = bench.assess("shell", asked.clone()).await;
    let words = [format!("read {from}"), format!("write {to}")];
    assert_eq!((assessment.risk, &assessment.subject.permissions[..]), (Risk::High, &words[..]));
    assert!(assessment.preview.contains(&words.join(", ")), "{}", assessment.preview);
    let done = crate::bench::json(&bench.run("shell", asked).await);
    assert_eq!((&done["exit_code"], &done["stdout"]), (&json!(0), &json!("hi\n")), "{done}");
    assert!(write.path().join("y").exists());
    // The next command has none of it.
    assert_ne!(run(&bench, &command).await["exit_code"], 0);
}

#[tokio::test]
async fn the_network_can_be_asked_for() {
    let bench = Bench::in_sandbox(Sandbox::default());
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let command =
        format!("exec 3<>/dev/tcp/{}", server.local_addr().unwrap().to_string().replace(':', "/"));
    assert_ne!(run(&bench, &command).await["exit_code"], 0);
    let asked = json!({ "command": command, "permissions": { "network": true } });
    assert_eq!(bench.assess("shell", asked.clone()).await.subject.permissions, ["use the network"]);
    assert_eq!(crate::bench::json(&bench.run("shell", asked).await)["exit_code"], 0);
    let unknown = json!({ "command": command, "permissions": { "root": true } });
    let refused = bench.run("shell", unknown).await;
    assert!(text(&refused).contains("root"), "{}", text(&refused));
}

#[tokio::test]
async fn no_command_runs_without_a_sandbox_that_is_required() {
    let bench = Bench::in_sandbox(Sandbox { mode: Mode::Require, ..Sandbox::default() });
    let output = bench.run("shell", json!({ "command": "echo ran" })).await;
    let kernel = probe();
    if (kernel.landlock.is_some() || report(SUPERVISOR.as_ref()).namespaces) && kernel.seccomp {
        assert_eq!(crate::bench::json(&output)["stdout"], "ran\n");
    } else {
        assert_eq!(output.outcome.ending, Ending::Failed);
        assert!(text(&output).starts_with("the command was not run: the sandbox is required"));
    }
}

#[tokio::test]
async fn without_a_sandbox_nothing_is_in_the_way() {
    let bench = Bench::in_sandbox(Sandbox { mode: Mode::Off, ..Sandbox::default() });
    let command = "grep -h -e NoNewPrivs -e Seccomp: /proc/self/status";
    let outside = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = |name| outside.lines().find(|line: &&str| line.starts_with(name)).unwrap();
    let expected = format!("{}\n{}\n", own("NoNewPrivs"), own("Seccomp:"));
    assert_eq!(run(&bench, command).await["stdout"], expected);
}

/// A folder of a repository as a workspace; gives what the command says there.
async fn in_a_folder_of(repository: &Bench, command: &str) -> Value {
    let sub = repository.path().join("sub");
    crate::bench::json(&repository.run_in(&sub, "shell", json!({ "command": command })).await)
}

#[tokio::test]
async fn the_history_of_the_repository_around_can_be_read_but_not_written() {
    let bench = Bench::new();
    bench.files(&[("sub/a", "1\n"), ("beside", "hush\n")]);
    bench.commit().await;
    let shown =
        in_a_folder_of(&bench, "git log --format=%s && echo 2 > a && git diff --stat .").await;
    assert_eq!(shown["exit_code"], 0, "{shown}");
    assert!(shown["stdout"].as_str().unwrap().starts_with("x\n sub/a | 2 +-\n"), "{shown}");
    if probe().landlock.is_none() {
        eprintln!("NOT CHECKED, this kernel cannot keep commands from writing");
        return;
    }
    for command in [
        "echo x >> ../.git/config",
        "echo x > ../.git/hooks/pre-commit",
        "git config core.pager evil",
        "git -c user.name=x -c user.email=x@y commit -qam y",
        "cat ../beside",
    ] {
        let tried = in_a_folder_of(&bench, command).await;
        assert_ne!(tried["exit_code"], 0, "{command}: {tried}");
    }
}

#[tokio::test]
async fn what_only_calls_itself_a_repository_opens_nothing() {
    let outside = TempDir::new().unwrap();
    let secret = outside.path().join("store");
    for name in ["objects", "refs", "worktrees/x"] {
        std::fs::create_dir_all(secret.join(name)).unwrap();
    }
    for name in ["HEAD", "secret", "worktrees/x/secret", "worktrees/x/HEAD"] {
        std::fs::write(secret.join(name), "ref: refs/heads/hush\n").unwrap();
    }
    std::fs::write(secret.join("worktrees/x/commondir"), "../..\n").unwrap();
    std::fs::write(secret.join("worktrees/x/gitdir"), "/somewhere/else/.git\n").unwrap();
    let at = secret.display();
    for make in [
        format!("echo 'gitdir: {at}' > .git"),
        format!("echo 'gitdir: {at}/worktrees/x' > .git"),
        format!("ln -s {at} .git"),
        format!(
            "mkdir -p fake && echo $PWD/.git > fake/gitdir && echo {at} > fake/commondir && \
             echo x > fake/HEAD && echo 'gitdir: fake' > .git"
        ),
    ] {
        let bench = Bench::new();
        assert_eq!(run(&bench, &make).await["exit_code"], 0, "{make}");
        let read = run(&bench, &format!("cat {at}/secret || cat {at}/worktrees/x/secret")).await;
        assert_eq!(read["exit_code"] != 0, probe().landlock.is_some(), "{make}: {read}");
    }
}
