//! `verify` runs what AGENTS.md names or what is configured, or says that nothing applies.

use quintet_kernel::tool::{Ending, Risk};
use serde_json::json;

use crate::bench::{Bench, json as report, text};

const NOTHING: &str =
    "no verification command applies: the workspace has no Makefile with a test target";

fn given(commands: &[&str]) -> Bench {
    Bench::verifying(commands)
}

/// Checks that a text has these pieces. A login shell may say things of its own in between.
#[track_caller]
fn in_order(text: &str, pieces: &[&str]) {
    let mut rest = text;
    for piece in pieces {
        let at = rest.find(piece).unwrap_or_else(|| panic!("no {piece:?} in its place: {text}"));
        rest = &rest[at + piece.len()..];
    }
}

#[tokio::test]
async fn by_default_a_test_target_is_made_where_there_is_one() {
    let bench = Bench::new();
    bench.write("Makefile", "build:\n\ttrue\n");
    let output = bench.run("verify", json!({})).await;
    assert!(output.outcome.ok() && output.files.is_empty());
    assert_eq!(text(&output), NOTHING);
    let shown = bench.assess("verify", json!({})).await;
    assert_eq!((shown.risk, shown.reversible), (Risk::Low, true));
    assert_eq!(shown.settled.unwrap().ending, Ending::Idle);

    bench.write("Makefile", "test:\n\t@echo checked\n");
    let output = bench.run("verify", json!(null)).await;
    assert_eq!(report(&output)[0]["cmd"], "make test");
    let shown = bench.assess("verify", json!({})).await;
    assert_eq!(shown.preview, format!("{}$ make test", bench.path().display()));
    assert_eq!(shown.risk, Risk::Medium);
}

#[tokio::test]
async fn given_commands_run_in_order_with_or_without_a_makefile() {
    let bench = given(&["echo one > a", "cat a; echo two >&2"]);
    let output = bench.run("verify", json!({})).await;
    assert_eq!(output.outcome.ending, Ending::Succeeded);
    let report = report(&output);
    assert_eq!(report.as_array().unwrap().len(), 2);
    assert_eq!(report[1]["stdout"], "one\n");
    assert!(report[1]["stderr"].as_str().unwrap().contains("two\n"));
    in_order(&bench.heard(), &["$ echo one > a\n", "$ cat a; echo two >&2\n", "one\n"]);
}

#[tokio::test]
async fn the_first_failure_ends_it() {
    let bench = given(&["true", "echo broken; exit 2", "touch never"]);
    let output = bench.run("verify", json!({})).await;
    assert_eq!(output.outcome.ending, Ending::Failed);
    assert_eq!(output.outcome.error.as_deref(), Some("verification failed"));
    assert_eq!(report(&output).as_array().unwrap().len(), 2);
    assert_eq!(report(&output)[1]["exit_code"], 2);
    assert!(!bench.path().join("never").exists());
    let [log] = &output.files[..] else { panic!("{} files", output.files.len()) };
    let content = String::from_utf8(log.content.clone()).unwrap();
    assert_eq!(log.name, "verify.log");
    in_order(
        &content,
        &["$ true\n", "[exit code 0, ", "$ echo broken", "\nbroken\n", "[exit code 2, "],
    );
}

#[tokio::test]
async fn cancel_ends_it_between_commands_too() {
    let bench = given(&["echo pid=$$; sleep 100", "touch never"]);
    let cancel = async {
        bench.hear("pid=").await;
        bench.cancel();
    };
    let (output, ()) = tokio::join!(bench.run("verify", json!({})), cancel);
    assert_eq!(output.outcome.ending, Ending::Cancelled);
    assert!(!bench.path().join("never").exists());
}

#[tokio::test]
async fn no_commands_are_no_failure() {
    let output = given(&[]).run("verify", json!({})).await;
    assert!(output.outcome.ok());
    assert_eq!(text(&output), "no verification command applies: none is configured");
}

#[tokio::test]
async fn what_the_workspace_names_goes_before_what_is_configured() {
    let bench = given(&["echo configured"]);
    bench.write("AGENTS.md", "# About\n\n## Verify\n- `echo one`\n- echo two\n");
    let shown = bench.assess("verify", json!({})).await;
    let path = bench.path().display();
    assert_eq!(shown.preview, format!("{path}$ echo one\n{path}$ echo two"));
    let output = bench.run("verify", json!({})).await;
    let commands: Vec<_> =
        report(&output).as_array().unwrap().iter().map(|run| run["cmd"].clone()).collect();
    assert_eq!(commands, ["echo one", "echo two"]);

    bench.write("AGENTS.md", "Nothing about checks.\n");
    assert_eq!(report(&bench.run("verify", json!({})).await)[0]["cmd"], "echo configured");
}

#[tokio::test]
async fn the_nearest_that_names_commands_counts() {
    let bench = given(&["echo configured"]);
    bench.files(&[
        (".git/config", ""),
        ("AGENTS.md", "Verify: echo outermost"),
        ("a/AGENTS.md", "```verify\necho outer\nmake nothing\n```"),
        ("a/b/AGENTS.md", "No checks."),
        ("a/c/AGENTS.md", "Verify: make nothing"),
    ]);
    for (folder, expected) in
        [("a/b", "echo outer"), ("a/c", "make nothing"), (".", "echo outermost")]
    {
        let output = bench.run_in(&bench.path().join(folder), "verify", json!({})).await;
        assert_eq!(report(&output)[0]["cmd"], expected, "{folder}");
        assert_eq!(report(&output).as_array().unwrap().len(), 1, "{folder}");
    }
}

#[tokio::test]
async fn nothing_runs_that_was_not_shown() {
    let bench = given(&["echo configured"]);
    bench.assess("verify", json!({})).await;
    bench.write("AGENTS.md", "Verify: touch never");
    let got = bench.tell("verify", json!({})).await;
    assert!(got.starts_with("! the verification commands are not those that were shown"), "{got}");
    assert!(!bench.path().join("never").exists());
    bench.assess("verify", json!({})).await;
    assert!(bench.run("verify", json!({})).await.outcome.ok());
}
