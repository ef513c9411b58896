//! `git_status` tells what changed, and runs nothing of the repository's.

use serde_json::json;

use crate::bench::{Bench, text};

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

/// A repository with a folder `sub`, in which a workspace may be.
async fn repository() -> Bench {
    let bench = Bench::new();
    bench.files(&[("top", "1\n"), ("sub/a", "1\n"), ("sub/b", "1\n"), (".gitignore", "*.log\n")]);
    bench.commit().await;
    bench
}

#[tokio::test]
async fn a_folder_of_a_repository_has_a_status_of_its_own() {
    let bench = repository().await;
    bench.files(&[("top", "2\n"), ("sub/a", "2\n"), ("sub/in/new", ""), ("sub/x.log", "")]);
    let sub = bench.path().join("sub");
    let told = bench.run_in(&sub, "git_status", json!({})).await;
    assert_eq!(text(&told), " M a\n?? in/\n");
    let told = bench.survey(&sub, 1000).await;
    assert!(told.ends_with("GIT STATUS:\n M a\n?? in/\n"), "{told}");
}

#[tokio::test]
async fn a_worktree_has_a_status() {
    let bench = Bench::new();
    bench.files(&[("main/a", "1\n"), ("main/sub/b", "1\n")]);
    let git = "git -c user.name=x -c user.email=x@example.org";
    let command = format!(
        "cd main && git init -q && {git} add -A && {git} commit -qm x && git worktree add -q ../other"
    );
    let made = bench.run("shell", json!({ "command": command })).await;
    assert!(made.outcome.ok(), "{}", text(&made));
    bench.files(&[("other/a", "2\n"), ("other/sub/b", "2\n")]);
    let other = bench.path().join("other");
    assert_eq!(text(&bench.run_in(&other, "git_status", json!({})).await), " M a\n M sub/b\n");
    let told = bench.survey(&other.join("sub"), 1000).await;
    assert!(told.ends_with("GIT STATUS:\n M b\n"), "{told}");
}
