//! The supervisor alone: what it does when the daemon goes away.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::bench::{SUPERVISOR, has_namespaces, lives};

/// Starts a script under the supervisor, which runs for as long as the child's stdin is open.
#[expect(clippy::disallowed_methods, reason = "it starts the supervisor")]
fn supervise(argv: &[&str]) -> Child {
    Command::new(SUPERVISOR)
        .args(["bare", "--"])
        .args(argv)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn stubborn() -> (Child, Vec<String>) {
    let script =
        "trap '' TERM; setsid sleep 100 & echo $!; sleep 100 & echo $!; echo $$; wait; wait";
    let mut child = supervise(&["/bin/bash", "-c", script]);
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let pids: Vec<_> = lines.take(3).map(Result::unwrap).collect();
    assert!(pids.iter().all(|pid| lives(pid)), "{pids:?}");
    (child, pids)
}

#[test]
fn the_tree_dies_when_its_stdin_is_closed() {
    // A holder that is killed lets go just like this: the kernel closes its end of the pipe.
    let (mut child, pids) = stubborn();
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(137));
    assert!(!pids.iter().any(|pid| lives(pid)), "{pids:?}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it starts a process that holds the stdin")]
fn the_tree_dies_when_the_holder_is_killed() {
    let (mut child, pids) = stubborn();
    let control = child.stdin.take().unwrap();
    let mut holder = Command::new("sleep").arg("100").stdout(Stdio::from(control)).spawn().unwrap();
    assert!(child.try_wait().unwrap().is_none());
    holder.kill().unwrap();
    holder.wait().unwrap();
    child.wait().unwrap();
    assert!(!pids.iter().any(|pid| lives(pid)), "{pids:?}");
}

#[test]
fn a_byte_is_as_good_as_the_end() {
    let (mut child, pids) = stubborn();
    child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    let control = child.stdin.take();
    child.wait().unwrap();
    assert!(!pids.iter().any(|pid| lives(pid)), "{pids:?}");
    drop(control);
}

#[test]
fn a_supervisor_that_is_told_to_stop_takes_its_tree_along() {
    let (mut child, pids) = stubborn();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let control = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(137));
    assert!(!pids.iter().any(|pid| lives(pid)), "{pids:?}");
    drop(control);
}

#[test]
fn a_stdin_that_is_closed_at_once_races_with_nothing() {
    for _ in 0..20 {
        let mut child = supervise(&["/bin/sh", "-c", "exit 7"]);
        drop(child.stdin.take());
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(7 | 143)), "{code:?}");
    }
}

#[test]
fn the_code_is_that_of_the_command() {
    let cases: [(&[&str], i32); 6] = [
        (&["/bin/sh", "-c", "exit 0"], 0),
        (&["/bin/sh", "-c", "exit 255"], 255),
        (&["/bin/sh", "-c", "kill -TERM $$"], 143),
        (&["/no/such/program"], 127),
        (&["/etc/passwd"], 126),
        (&[], 125),
    ];
    for (argv, code) in cases {
        let mut child = supervise(argv);
        let control = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{argv:?}");
        drop(control);
    }
}

/// Starts a server under the supervisor, which passes its input on.
#[expect(clippy::disallowed_methods, reason = "it starts the supervisor")]
fn serve(script: &str) -> Child {
    Command::new(SUPERVISOR)
        .args(["serve", "--", "/bin/bash", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_server_gets_its_input_and_may_leave_by_itself() {
    let mut child = serve("while read line; do echo \"got $line\"; done; exit 7");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for word in ["one", "two"] {
        writeln!(child.stdin.as_mut().unwrap(), "{word}").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), format!("got {word}"));
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(7));
}

#[test]
fn a_server_that_does_not_leave_is_ended_with_all_that_it_started() {
    let mut child =
        serve("trap '' TERM; setsid sleep 100 & echo $!; echo $$; while :; do sleep 100; done");
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let pids: Vec<_> = lines.take(2).map(Result::unwrap).collect();
    assert!(pids.iter().all(|pid| lives(pid)), "{pids:?}");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert!(!pids.iter().any(|pid| lives(pid)), "{pids:?}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "it starts the supervisor")]
fn a_server_in_namespaces_gets_its_input_and_leaves_nothing() {
    if !has_namespaces() {
        eprintln!("NOT CHECKED, there are no namespaces here");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let limits = serde_json::json!({
        "memory": 1_u64 << 34, "file": 1 << 30, "processes": 4096, "open_files": 1024, "cpu_seconds": 60,
    });
    let policy = serde_json::json!({
        "mode": "Require", "network": false, "namespaces": true, "scratch": scratch.path(), "limits": limits,
        "read": ["/usr", "/bin", "/lib", "/lib64", "/etc"], "write": [scratch.path()],
    });
    let script = "setsid sleep 100 & while read line; do echo \"$$ got $line\"; done; exit 7";
    let mut child = Command::new(SUPERVISOR)
        .args(["supervise", "--forward", "--confined", "--namespaces", "private", "--", SUPERVISOR])
        .args(["confine", &policy.to_string(), "--", "/bin/bash", "-c", script])
        .env("QUINTET_COMMAND_VARIABLES", "{}")
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for word in ["one", "two"] {
        writeln!(child.stdin.as_mut().unwrap(), "{word}").unwrap();
        let line = lines.next().unwrap().unwrap();
        // Only init was there before.
        assert_eq!(line, format!("2 got {word}"));
    }
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(7));
    // What it left in a session of its own held the output open.
    assert!(lines.next().is_none());
}
