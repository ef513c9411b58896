//! `shell` runs, reports, and leaves nothing behind.

use quintet_kernel::tool::{Ending, Risk};
use serde_json::json;
use tokio::time::{Duration, timeout};

use crate::bench::{Bench, has_namespaces, json as report, text, until};

/// A process that will not be asked to go; it says its pid.
const STUBBORN: &str = "bash -c 'trap \"\" TERM; echo pid=$$; while :; do sleep 100; done'";

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_is_reported() {
    let bench = Bench::new();
    let output =
        bench.run("shell", json!({ "command": "echo hi; echo oh >&2; cat; pwd -P" })).await;
    let report = report(&output);
    let here = bench.path().canonicalize().unwrap();
    assert_eq!(output.outcome.ending, Ending::Succeeded);
    assert_eq!(report["cmd"], "echo hi; echo oh >&2; cat; pwd -P");
    assert_eq!(report["exit_code"], 0);
    assert_eq!(report["stdout"], format!("hi\n{}\n", here.display()));
    // A login shell may complain about its profile; that is not ours to judge.
    assert!(report["stderr"].as_str().unwrap().contains("oh\n"));
    let duration = report["duration"].as_str().unwrap().strip_suffix('s').unwrap();
    assert!(duration.split_once('.').is_some_and(|(_, digits)| digits.len() == 3), "{duration}");
    assert!(text(&output).starts_with(r#"{"cmd":"#));
    assert!(output.files.is_empty());
}

#[tokio::test]
async fn an_exit_code_is_a_failure_and_a_signal_too() {
    let bench = Bench::new();
    for (command, code) in [("exit 3", 3), ("kill -9 $$", 137), ("no-such-command-here", 127)] {
        let output = bench.run("shell", json!({ "command": command })).await;
        assert_eq!(output.outcome.ending, Ending::Failed, "{command}");
        assert_eq!(output.outcome.error, Some(format!("exit code {code}")), "{command}");
        assert_eq!(report(&output)["exit_code"], code, "{command}");
    }
}

#[tokio::test]
async fn a_command_may_leave_its_process_group() {
    let bench = Bench::new();
    let code = async |command: &str| {
        let input = json!({ "command": command, "timeout_seconds": 60 });
        report(&bench.run("shell", input).await)["exit_code"].clone()
    };
    // It makes a group for itself.
    assert_eq!(code("timeout 50 sh -c 'exit 7'").await, 7);
    if has_namespaces() {
        let orphan = "(setsid sh -c 'echo $$ > pid' &); until [ -s pid ]; do sleep 0.01; done";
        let reaped = "while [ -e /proc/$(cat pid) ]; do sleep 0.01; done";
        assert_eq!(code(&format!("{orphan}; {reaped}")).await, 0);
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended() {
    let bench = Bench::new();
    let output = bench.run("shell", json!({ "command": STUBBORN, "timeout_seconds": 1 })).await;
    assert_eq!(output.outcome.ending, Ending::Failed);
    assert_eq!(output.outcome.error.as_deref(), Some("exit code 124: timed out after 1s"));
    assert_eq!(report(&output)["exit_code"], 124);
    // On a busy machine a second may not be enough for it to say its pid.
    assert!(
        !bench
            .heard()
            .lines()
            .filter_map(|line| line.strip_prefix("pid="))
            .any(|pid| bench.lives(pid))
    );
}

#[tokio::test]
async fn cancel_ends_the_whole_tree_before_it_returns() {
    for command in [
        STUBBORN.to_owned(),
        format!("{STUBBORN} & wait"),
        format!("setsid {STUBBORN} & wait"),
        format!("(setsid {STUBBORN} &) ; sleep 100"),
    ] {
        let bench = Bench::new();
        let cancel = async {
            let pid = bench.hear("pid=").await;
            assert!(bench.lives(&pid));
            bench.cancel();
            pid
        };
        let run = bench.run("shell", json!({ "command": command }));
        let (output, pid) = tokio::join!(run, cancel);
        assert!(!bench.lives(&pid), "{command}");
        assert_eq!(output.outcome.ending, Ending::Cancelled, "{command}");
        assert_eq!(output.outcome.error.as_deref(), Some("cancelled"));
        assert_eq!(report(&output)["stdout"], format!("pid={pid}\n"));
    }
}

#[tokio::test]
async fn what_runs_in_the_background_does_not_outlive_the_call() {
    let bench = Bench::new();
    let command = format!(
        "(setsid {STUBBORN} &); {STUBBORN} & sleep 100 & echo pid=$!; until \
                           [ -e go ]; do sleep 0.01; done; exit 5"
    );
    let go = async {
        let pids = until("three pids", || {
            let heard = bench.heard();
            let pids: Vec<_> = heard.lines().filter_map(|line| line.strip_prefix("pid=")).collect();
            (pids.len() == 3 && heard.ends_with('\n')).then(|| pids.join(" "))
        })
        .await;
        bench.write("go", "");
        pids
    };
    let (output, pids) = tokio::join!(bench.run("shell", json!({ "command": command })), go);
    assert_eq!(output.outcome.error.as_deref(), Some("exit code 5"));
    assert!(!pids.split(' ').any(|pid| bench.lives(pid)), "{pids}");
}

#[tokio::test]
async fn a_call_that_is_dropped_ends_too() {
    let bench = Bench::new();
    let pid = {
        let run = bench.run("shell", json!({ "command": STUBBORN }));
        tokio::select! { pid = bench.hear("pid=") => pid, _ = run => panic!("it ended by itself") }
    };
    until("the process is gone", || (!bench.lives(&pid)).then_some(())).await;
}

#[tokio::test]
async fn orphans_of_a_long_command_are_reaped_while_it_runs() {
    let bench = Bench::new();
    let command = "(sleep 0.01 & echo pid=$!); until [ -e go ]; do sleep 0.01; done";
    let go = async {
        let pid = bench.hear("pid=").await;
        until("the orphan is reaped", || (!bench.lives(&pid)).then_some(())).await;
        bench.write("go", "");
    };
    let (output, ()) = tokio::join!(bench.run("shell", json!({ "command": command })), go);
    assert!(output.outcome.ok());
}

#[tokio::test]
async fn commands_do_not_see_the_daemons_environment() {
    let bench = Bench::new();
    // Cargo gives its tests plenty of variables, as a daemon may have secrets.
    assert!(std::env::vars_os().any(|(name, _)| name == "CARGO_MANIFEST_DIR"));
    let output = bench.run("shell", json!({ "command": "env" })).await;
    let environment = report(&output)["stdout"].as_str().unwrap().to_owned();
    assert!(environment.lines().any(|line| line.starts_with("PATH=")), "{environment}");
    assert!(!environment.contains("CARGO_"), "{environment}");
}

#[tokio::test]
async fn long_output_is_cut_and_kept() {
    let bench = Bench::new();
    let output = bench.run("shell", json!({ "command": "seq 100000; echo end >&2" })).await;
    let whole: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    let report = report(&output);
    let shown = report["stdout"].as_str().unwrap();
    assert!(shown.starts_with("1\n2\n") && shown.ends_with("\n99999\n100000\n"));
    let left_out = whole.len() - 32 * 1024;
    assert!(shown.contains(&format!("\n[{left_out} bytes left out]\n")));
    assert!(report["stderr"].as_str().unwrap().contains("end\n"));
    let [file] = &output.files[..] else { panic!("{} files", output.files.len()) };
    assert_eq!((file.name.as_str(), file.mime.as_str()), ("stdout.log", "text/plain"));
    assert_eq!(file.content, whole.as_bytes());
}

#[tokio::test]
async fn output_arrives_while_the_command_runs() {
    let bench = Bench::new();
    let command = r"printf 'half \xe2\x82'; printf '\xac\n'; until [ -e go ]; do sleep 0.01; done";
    let go = async {
        assert_eq!(bench.hear("half ").await, "€");
        bench.write("go", "");
    };
    let (output, ()) = tokio::join!(bench.run("shell", json!({ "command": command })), go);
    assert_eq!(report(&output)["stdout"], "half €\n");
}

#[tokio::test]
async fn a_command_that_closes_its_output_is_still_waited_for() {
    let bench = Bench::new();
    let command = "exec >&- 2>&-; until [ -e go ]; do sleep 0.01; done; exit 4";
    let mut run = std::pin::pin!(bench.run("shell", json!({ "command": command })));
    assert!(timeout(Duration::from_millis(50), &mut run).await.is_err());
    bench.write("go", "");
    assert_eq!(run.await.outcome.error.as_deref(), Some("exit code 4"));
}

#[tokio::test]
async fn what_cannot_run_says_why() {
    let bench = Bench::new();
    let cases = [
        (json!({}), "invalid input: /command is required"),
        (json!({ "command": "  " }), "invalid input: `command` is empty"),
        (json!({ "command": "a\0b" }), "the command could not be started: "),
    ];
    for (input, expected) in cases {
        let output = bench.run("shell", input).await;
        assert_eq!(output.outcome.ending, Ending::Failed);
        assert!(text(&output).starts_with(expected), "{}", text(&output));
    }
    let nowhere = bench.path().join("nowhere");
    let output = bench.run_in(&nowhere, "shell", json!({ "command": "true" })).await;
    assert!(text(&output).starts_with("the workspace is not a directory: "));
}

#[tokio::test]
async fn the_person_who_is_asked_sees_directory_command_and_risk() {
    let bench = Bench::new();
    let got = bench.assess("shell", json!({ "command": "rm -rf x" })).await;
    assert_eq!(got.preview, format!("{}$ rm -rf x", bench.path().display()));
    assert_eq!((got.risk, got.reversible), (Risk::High, false));
    assert_eq!(got.reasons, ["removes directories without asking"]);
}
