//! A turn that works with git is undone together with what git keeps of it.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::client::Client;
use crate::daemon::{World, appears};

const CALM: &str =
    "[approval]\nkinds = []\n[verify]\nauto = false\n[recovery]\npolicy = \"leave\"\n";

/// What a turn does with git.
const WORK: &str = "echo 2 > a; git add a; git commit -qm two; git checkout -q -b topic; echo x > new; \
                    git add new; git commit -qm three; git config alias.x log; echo 3 > b; git stash -q";

/// What git says where a user asks.
fn git(workspace: &Path, command: &str) -> String {
    let who = [("NAME", "x"), ("EMAIL", "x@example.org")];
    let who = who.into_iter().flat_map(|(what, value)| {
        ["AUTHOR", "COMMITTER"].map(|role| (format!("GIT_{role}_{what}"), value))
    });
    let ran = Command::new("sh").args(["-c", command]).current_dir(workspace).envs(who).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{command}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// A repository with a commit, something staged and something changed.
fn set_up(workspace: &Path) {
    let command = "git init -q -b main; git config user.name x; git config user.email x@example.org; echo 1 > a; \
                   echo 1 > b; echo 1 > c; git add .; git commit -qm one; echo 9 > c; git add c; echo 8 > c";
    git(workspace, command);
}

fn state(workspace: &Path) -> String {
    let command = "git log --all --oneline; git --no-optional-locks status --porcelain --branch; git branch; git stash list; \
                   git ls-files --stage; git config --local --list; git fsck --no-dangling; cat a b c; ls";
    git(workspace, command)
}

async fn turn(client: &Client, world: &World, command: &str) -> String {
    let id = client.create(world.workspace()).await;
    let tool = json!({ "name": "shell", "args": { "command": command } });
    let turn = client.say(&id, json!([{ "tools": [tool] }, { "text": "done" }])).await;
    format!("/v1/sessions/{id}/turns/{turn}")
}

async fn revert(client: &Client, path: &str) -> (u16, Value) {
    client.post(&format!("{path}/revert"), json!({})).await
}

#[tokio::test]
async fn a_turn_that_commits_is_undone_with_its_commits() {
    let world = World::start("").await;
    let (client, workspace) = (world.client(), world.workspace());
    set_up(workspace);
    let before = state(workspace);
    let path = turn(&client, &world, WORK).await;
    client.until_over(path.split('/').nth(3).unwrap()).await;
    assert_ne!(state(workspace), before);
    let (_, changes) = client.get(&format!("{path}/changes")).await;
    assert_eq!(changes["unrecorded"], json!([]), "{changes}");
    let diff = changes["diff"].as_str().unwrap();
    assert!(diff.contains("-ref: refs/heads/main\n+ref: refs/heads/topic\n"), "{diff}");
    assert!(
        !diff.contains("objects/") && !diff.contains(".git/index") && !diff.contains("logs/HEAD"),
        "{diff}"
    );
    let files = changes["files"].as_array().unwrap();
    let mut objects = files.iter().filter(|it| it["path"].as_str().unwrap().contains("/objects/"));
    let object = objects.find(|file| file["folder"].is_null());
    assert!(object.is_some_and(|file| file["hash_after"].is_string()), "{changes}");
    // A look is not in the way.
    git(workspace, "touch a b; git status");
    let (status, done) = revert(&client, &path).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(state(workspace), before);
    let told: Vec<_> = done["files"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(
        told.contains(&".git/HEAD") && !told.iter().any(|path| path.contains("objects")),
        "{done}"
    );
}

#[tokio::test]
async fn what_the_user_committed_since_is_not_undone() {
    let world = World::start("").await;
    let (client, workspace) = (world.client(), world.workspace());
    set_up(workspace);
    let path = turn(&client, &world, WORK).await;
    client.until_over(path.split('/').nth(3).unwrap()).await;
    git(workspace, "echo mine > mine; git add mine; git commit -qm mine");
    let before = state(workspace);
    let (status, refused) = revert(&client, &path).await;
    assert_eq!(status, 409);
    let reason = refused["error"].as_str().unwrap();
    assert!(
        reason.contains(".git/refs/heads/topic was changed since: the branch topic moved"),
        "{reason}"
    );
    assert_eq!(state(workspace), before);
    git(workspace, "git reset -q --hard HEAD~");
    let (status, done) = revert(&client, &path).await;
    assert_eq!(status, 200, "{done}");
}

#[tokio::test]
async fn a_commit_that_a_kill_cut_off_is_undone() {
    let mut world = World::start(CALM).await;
    let client = world.client();
    set_up(world.workspace());
    // Stops in the middle of a commit, with everything locked.
    let hook = world.workspace().join(".git/hooks/reference-transaction");
    let code =
        "#!/bin/sh\nif [ \"$1\" = prepared ] && [ -e a.ready ]; then : > ready; sleep 600; fi\n";
    std::fs::write(&hook, code).unwrap();
    git(world.workspace(), "chmod +x .git/hooks/reference-transaction");
    let before = state(world.workspace());
    let path =
        turn(&client, &world, &format!("{WORK}; : > a.ready; git commit -qam four --allow-empty"))
            .await;
    appears(&world.workspace().join("ready")).await;
    world.kill();
    world.restart();
    let client = world.client();
    client.until_over(path.split('/').nth(3).unwrap()).await;
    let (status, done) = revert(&client, &path).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(state(world.workspace()), before);
    std::fs::remove_file(&hook).unwrap();
    // Nothing is locked any more.
    git(world.workspace(), "git add a b && git commit -qm mine && git checkout -q -b other");
}

#[tokio::test]
async fn what_the_user_committed_meanwhile_is_not_undone() {
    for (mine, refused) in
        [("git commit -qm mine --allow-empty", true), ("touch a b; git status", false)]
    {
        let world = World::start("").await;
        let (client, workspace) = (world.client(), world.workspace());
        set_up(workspace);
        let before = state(workspace);
        let id = client.create(workspace).await;
        let shell = |command: &str| json!({ "tools": [{ "name": "shell", "args": { "command": command } }] });
        // The user comes in between two calls of a turn.
        let wait = shell(": > ready; until [ -e go ]; do sleep 0.01; done");
        let commit = shell("echo 2 > a; git add a; git commit -qm two");
        let again = shell("echo 3 > a; git add a; git commit -qm three");
        let turn = client.say(&id, json!([commit, wait, again, { "text": "done" }])).await;
        appears(&workspace.join("ready")).await;
        git(workspace, &format!("{mine}; : > go"));
        client.until_over(&id).await;
        let then = state(workspace);
        let (status, answer) = revert(&client, &format!("/v1/sessions/{id}/turns/{turn}")).await;
        if refused {
            let reason = answer["error"].as_str().unwrap();
            let expected = ".git/refs/heads/main was changed by somebody else meanwhile";
            assert!(status == 409 && reason.contains(expected), "{answer}");
            assert_eq!(state(workspace), then);
        } else {
            assert_eq!(status, 200, "{answer}");
            std::fs::remove_file(workspace.join("go")).unwrap();
            assert_eq!(state(workspace), before);
        }
    }
}
