//! `git_status` tells what changed, and runs nothing of the repository's.

use serde_json::json;

use crate::bench::Bench;

#[tokio::test]
async fn changes_are_told() {
    let bench = Bench::new();
    bench.write("a", "1\n");
    bench.commit().await;
    assert_eq!(bench.tell("git_status", json!({})).await, "nothing changed");
    bench.write("a", "2\n");
    bench.write("b", "");
    assert_eq!(bench.tell("git_status", json!(null)).await, " M a\n?? b\n");
}

#[tokio::test]
async fn what_is_no_repository_is_called_so() {
    let got = Bench::new().tell("git_status", json!({})).await;
    assert_eq!(got, "! the workspace is not a git repository");
    let got = Bench::new().tell("git_status", json!({ "all": true })).await;
    assert!(got.starts_with("! invalid input: /all is unknown"), "{got}");
}

#[tokio::test]
async fn a_monitor_of_the_repository_is_not_run() {
    let bench = Bench::new();
    bench.commit().await;
    let command = "git config core.fsmonitor \"touch $PWD/ran; false\"";
    bench.run("shell", json!({ "command": command })).await;
    bench.tell("git_status", json!({})).await;
    assert!(!bench.path().join("ran").exists());
}
