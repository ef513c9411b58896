//! What commands do to git's own files is recorded and turned back with the rest.

use quintet_kernel::port::Changed;
use serde_json::json;

use crate::bench::{Bench, changed, text};

/// Who commits, wherever there is no such setting.
const GIT: &str = "export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.org GIT_COMMITTER_NAME=x \
                   GIT_COMMITTER_EMAIL=x@example.org; set -e; ";

/// All that git says of a repository, without writing anything.
const STATE: &str = "g='git --no-optional-locks'; $g status --porcelain --branch; $g for-each-ref; $g log --all --oneline \
                     | sort; $g stash list; $g ls-files --stage; $g config --local --list; cat .git/HEAD; ls .git \
                     .git/hooks | grep -v sharedindex; $g fsck --no-dangling";

async fn shell(bench: &Bench, command: &str) -> Vec<Changed> {
    let output = bench.run("shell", json!({ "command": format!("{GIT}{command}") })).await;
    assert!(output.outcome.ok(), "{command}: {}", text(&output));
    assert_eq!(output.outcome.unrecorded, [], "{command}");
    output.changes
}

/// A repository with two commits, something staged and something that is not.
async fn repository() -> Bench {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "1\n"), ("dir/c", "1\n")]);
    let command = "git init -q -b main; git add .; git commit -qm one; echo 2 > a; git commit -qam two; git tag v1; \
                   git branch other HEAD~; echo 3 > a; git add a; echo 2 > b; echo 1 > new";
    shell(&bench, command).await;
    bench
}

async fn state(bench: &Bench) -> String {
    let output = bench.run("shell", json!({ "command": STATE })).await;
    assert_eq!(changed(&output), Vec::<String>::new(), "{}", text(&output));
    let files: Vec<_> = bench
        .snapshot()
        .into_iter()
        .filter(|(path, _)| !path.iter().any(|name| name == ".git") && path.is_file())
        .map(|(path, content)| {
            format!("{}: {}\n", path.display(), String::from_utf8_lossy(&content))
        })
        .collect();
    crate::bench::json(&output)["stdout"].as_str().unwrap().to_owned() + &files.concat()
}

#[tokio::test]
async fn whatever_is_done_with_git_is_turned_back() {
    for command in [
        "git commit -qm three",
        "git commit -qam three; git commit -q --amend -m four",
        "git checkout -q -b mine; git commit -qam three",
        "git add -A",
        "git reset -q",
        "git reset -q --hard HEAD~",
        "git stash -q; git stash -q --include-untracked; git stash list",
        "git stash -q; git stash pop -q",
        "git config user.name y; git config alias.x log",
        "printf '#!/bin/sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
        "git branch -D other; git tag -d v1; git tag v2",
        "git stash -q; git checkout -q other; echo 9 > dir/c; git commit -qam x; git merge -q main -m merged",
        "git stash -q; git checkout -q other; echo 9 > a; git commit -qam x; ! git merge -q main",
        "git stash -q; git checkout -q other; echo 9 > dir/c; git commit -qam x; git rebase -q main",
        "git commit -qam three; git gc -q --prune=now",
        "git pack-refs --all; git repack -qad; git commit-graph write",
        "git worktree add -q tree other; cd tree; echo 9 > a; git commit -qam x; git worktree list",
        "git rm -q --cached b; git mv dir/c d; git update-index --assume-unchanged a",
        "rm -rf .git",
        "mv .git dir/.git",
        "git clone -q . copy; git -c protocol.file.allow=always submodule --quiet add $PWD/copy mod; git commit -qam sub",
        "git update-index --index-version 4; git add new; git update-index --split-index; git add b",
        "rm -rf .git; git init -q; git add .; git commit -qm other",
        "git init -q sub; cd sub; echo 1 > x; git add x; git commit -qm x",
        "git clone -q . copy; cd copy; echo 9 > a; git commit -qam x; git push -q origin HEAD:refs/heads/pushed",
        "echo 1 > $'.git/refs/heads/not-\\xff-text'; rm $'.git/refs/heads/not-\\xff-text'",
    ] {
        let bench = repository().await;
        let before = state(&bench).await;
        let changes = shell(&bench, command).await;
        assert!(!changes.is_empty() || command.contains("xff"), "{command}");
        for _ in 0..2 {
            assert_eq!(bench.put_back(changes.clone()).await, Ok(()), "{command}");
            assert_eq!(state(&bench).await, before, "{command}");
        }
        assert!(!bench.path().join("sub").exists() && !bench.path().join("copy").exists());
    }
}

#[tokio::test]
async fn what_was_done_with_git_since_stays() {
    let refused = "nothing was changed: ";
    for (command, since, reason) in [
        (
            "git commit -qam x",
            "git commit -qm y --allow-empty",
            ".git/refs/heads/main was changed since: the branch main moved",
        ),
        (
            "git commit -qam x",
            "git add new",
            ".git/index was changed since: something else is staged",
        ),
        (
            "git checkout -q -b x",
            "git checkout -q -b y",
            ".git/HEAD was changed since: something else is checked out",
        ),
        (
            "git tag v2",
            "git tag -f v2 HEAD~",
            ".git/refs/tags/v2 was changed since: the tag v2 moved",
        ),
        ("git branch x", "git branch -D x", ""),
        ("git branch x", "git pack-refs --all", ".git/refs/heads/x was packed by git since"),
        (
            "git pack-refs --all; git commit -qam x",
            "git pack-refs --all; git checkout -q -- .",
            ".git/packed-refs was changed since; .git/refs/heads/main was packed by git since",
        ),
        ("git branch -D other", "git branch other", ".git/refs/heads/other is there again"),
        ("git config a.b c", "git config a.b d", ".git/config was changed since"),
        ("git commit -qam x", "touch .git/index.lock", "git is at work: .git/index.lock is there"),
        (
            "git checkout -q -b x",
            "touch .git/index.lock",
            "git is at work: .git/index.lock is there",
        ),
        ("git checkout -q -b x", "touch .git/HEAD.lock", "git is at work: .git/HEAD.lock is there"),
        (
            "git tag v2.0",
            "touch .git/refs/tags/v2.0.lock",
            "git is at work: .git/refs/tags/v2.0.lock is there",
        ),
        (
            "git branch x",
            "touch .git/packed-refs.lock",
            "git is at work: .git/packed-refs.lock is there",
        ),
        (
            "git worktree add -q tree other; cd tree; git commit -qm x --allow-empty",
            "touch .git/worktrees/tree/index.lock",
            "git is at work: .git/worktrees/tree/index.lock is there",
        ),
        (
            "git init -q -b main sub",
            "cd sub; git commit -qm x --allow-empty",
            "sub/.git/refs/heads/main is new in sub/.git/refs/heads; sub/.git/index is new in sub/.git",
        ),
    ] {
        let bench = repository().await;
        let changes = shell(&bench, command).await;
        shell(&bench, since).await;
        let before = bench.snapshot();
        let result = bench.put_back(changes).await;
        if reason.is_empty() {
            assert_eq!(result, Ok(()), "{command}; {since}");
            continue;
        }
        assert_eq!(result, Err(format!("{refused}{reason}")), "{command}; {since}");
        assert_eq!(bench.snapshot(), before, "{command}; {since}");
    }
}

#[tokio::test]
async fn what_git_does_by_itself_is_in_nobody_s_way() {
    for since in [
        "touch a new; git status; git diff",
        "git gc -q; git status",
        "git reflog expire --expire=now --all; echo x > .git/ORIG_HEAD; echo x > .git/COMMIT_EDITMSG",
        "git fetch -q . main; git branch mine; git tag mine",
        "git update-index --index-version 4; git update-index --refresh -q || true",
    ] {
        let bench = repository().await;
        let before = state(&bench).await;
        let changes =
            shell(&bench, "git commit -qam three; git checkout -q -b x; git rm -q b").await;
        let since = since.replace("git gc -q", "git repack -qad");
        shell(&bench, &since).await;
        assert_eq!(bench.put_back(changes).await, Ok(()), "{since}");
        shell(&bench, "git branch -D mine || true; git tag -d mine || true; rm -f .git/FETCH_HEAD")
            .await;
        let same = |state: &str| {
            state.lines().filter(|line| !line.contains("HEAD")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(same(&state(&bench).await), same(&before), "{since}");
    }
}

#[tokio::test]
async fn looking_is_no_change_and_is_not_recorded() {
    let bench = repository().await;
    assert_eq!(shell(&bench, "touch a b dir/c; git status; git diff --stat; git log").await, []);
    bench.run("git_status", json!({})).await;
    assert_eq!(shell(&bench, "git add a").await, []);
}

#[tokio::test]
async fn names_of_objects_may_be_longer() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n")]);
    shell(&bench, "git init -q -b main --object-format=sha256; git add .; git commit -qm one")
        .await;
    let before = state(&bench).await;
    let changes = shell(&bench, "echo 2 > a; git commit -qam two; touch a; git status").await;
    shell(&bench, "touch a; git status").await;
    assert_eq!(bench.put_back(changes).await, Ok(()));
    assert_eq!(state(&bench).await, before);
}

#[tokio::test]
async fn commits_that_were_undone_can_be_found_again() {
    let bench = repository().await;
    let changes = shell(&bench, "git commit -qam three; git rev-parse HEAD > id").await;
    let id = bench.read("id");
    let objects: Vec<_> = changes.iter().filter(|it| it.path.contains("/objects/")).collect();
    assert!(objects.len() >= 3, "{objects:?}");
    assert_eq!(bench.put_back(changes).await, Ok(()));
    shell(
        &bench,
        &format!("git cat-file -e {0}; git merge -q --ff-only {0} || git log -1 {0}", id.trim()),
    )
    .await;
}

#[tokio::test]
async fn a_repository_that_lies_apart_is_git_s_own_too() {
    let bench = Bench::new();
    bench.files(&[("tree/a", "1\n")]);
    let command =
        "git init -q -b main --separate-git-dir=meta tree; cd tree; git add .; git commit -qm one";
    shell(&bench, command).await;
    let before = bench.snapshot();
    let changes =
        shell(&bench, "cd tree; echo 2 > a; git commit -qam two; git checkout -q -b x").await;
    shell(&bench, "cd tree; touch a; git status; echo > ../meta/ORIG_HEAD; rm ../meta/ORIG_HEAD")
        .await;
    assert_eq!(bench.put_back(changes).await, Ok(()));
    let objects = |(path, _): &(std::path::PathBuf, Vec<u8>)| {
        !path.iter().any(|name| name == "objects" || name == "index")
    };
    let left: Vec<_> = bench.snapshot().into_iter().filter(objects).collect();
    assert_eq!(left, before.into_iter().filter(objects).collect::<Vec<_>>());
    let output = bench
        .run(
            "shell",
            json!({ "command": "cd tree; git status --porcelain; git fsck --no-dangling" }),
        )
        .await;
    assert_eq!(crate::bench::json(&output)["stdout"], "");
}

#[tokio::test]
async fn worktrees_in_a_bare_repository_are_somebody_s_own() {
    let bench = Bench::new();
    let command = "git init -q --bare -b main store; cd store; \
                   git worktree add -q --orphan -b main main 2>/dev/null || { \
                   t=$(git mktree </dev/null); c=$(git commit-tree -m x $t); \
                   git update-ref refs/heads/main $c; git worktree add -q main main; }; \
                   echo 1 > main/Cargo.lock";
    shell(&bench, command).await;
    for command in ["echo 2 > store/main/Cargo.lock", "rm -r store/main; mkdir store/main"] {
        let changes = shell(&bench, command).await;
        bench.write("store/main/Cargo.lock", "mine\n");
        let error = bench.put_back(changes.clone()).await.unwrap_err();
        assert!(error.starts_with("nothing was changed: store/main/Cargo.lock "), "{error}");
        std::fs::remove_file(bench.path().join("store/main/Cargo.lock")).unwrap();
        if command.starts_with("echo") {
            bench.write("store/main/Cargo.lock", "2\n");
        }
        assert_eq!(bench.put_back(changes).await, Ok(()));
        assert_eq!(bench.read("store/main/Cargo.lock"), "1\n");
    }
}

#[tokio::test]
async fn objects_that_cannot_be_looked_at_are_not_given_up() {
    let bench = repository().await;
    let changes = shell(&bench, "rm -r .git/objects/$(git rev-parse HEAD | head -c 2)").await;
    let folder = bench.path().join(&changes.iter().min_by_key(|it| it.path.len()).unwrap().path);
    std::fs::create_dir(bench.path().join("apart")).unwrap();
    std::os::unix::fs::symlink(bench.path().join("apart"), &folder).unwrap();
    assert!(bench.put_back(changes.clone()).await.is_err());
    std::fs::remove_file(&folder).unwrap();
    assert_eq!(bench.put_back(changes).await, Ok(()));
    shell(&bench, "git fsck --no-dangling").await;
}

#[tokio::test]
async fn an_undo_that_a_crash_cut_off_goes_on() {
    let command = "git clone -q . copy; git -c protocol.file.allow=always submodule --quiet add $PWD/copy mod";
    for part in ["refs", "HEAD", "objects/pack", "HEAD .git/modules/mod/refs"] {
        let bench = repository().await;
        let before = state(&bench).await;
        let changes = shell(&bench, command).await;
        shell(&bench, &format!("rm -rf .git/modules/mod/{part}")).await;
        assert_eq!(bench.put_back(changes).await, Ok(()), "{part}");
        assert_eq!(state(&bench).await, before, "{part}");
        assert!(!bench.path().join(".git/modules").exists(), "{part}");
    }
}

#[tokio::test]
async fn large_files_that_git_holds_apart_stay() {
    let bench = repository().await;
    let changes =
        shell(&bench, "mkdir -p .git/lfs/objects/ab; echo 1 > .git/lfs/objects/ab/c").await;
    assert_eq!(bench.put_back(changes).await, Ok(()));
    assert_eq!(bench.read(".git/lfs/objects/ab/c"), "1\n");
}

#[tokio::test]
async fn file_tools_are_recorded_there_too() {
    let bench = repository().await;
    let before = bench.snapshot();
    let output =
        bench.run("write_file", json!({ "path": ".git/hooks/pre-commit", "content": "x" })).await;
    assert_eq!(changed(&output), [".git/hooks/pre-commit: - > x"]);
    assert_eq!(bench.put_back(output.changes).await, Ok(()));
    assert_eq!(bench.snapshot(), before);
}

#[tokio::test]
async fn a_diff_tells_what_counts_of_git_s_own_files() {
    let bench = repository().await;
    let command = "echo 9 > dir/c; git add a b; git checkout -q -b x; git commit -qm three; git config a.b c; \
                   git init -q -b main sub; git rev-parse HEAD > id";
    let diff = bench.diff(shell(&bench, command).await).await;
    let id = bench.read("id");
    let names: Vec<_> =
        diff.lines().filter_map(|line| line.strip_prefix("diff --git a/")).collect();
    let expected = [
        "dir/c b/dir/c",
        "id b/id",
        ".git/HEAD b/.git/HEAD",
        ".git/config b/.git/config",
        ".git/refs/heads/x b/.git/refs/heads/x",
        "sub/.git/HEAD b/sub/.git/HEAD",
        "sub/.git/config b/sub/.git/config",
        "sub/.git/info/exclude b/sub/.git/info/exclude",
    ];
    assert_eq!(names, expected, "{diff}");
    assert!(diff.contains("-ref: refs/heads/main\n+ref: refs/heads/x\n"), "{diff}");
    assert!(diff.contains(&format!("+++ b/.git/refs/heads/x\n@@ -0,0 +1 @@\n+{id}")), "{diff}");
}
