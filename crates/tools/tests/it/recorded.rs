//! What commands do to files is recorded with their calls.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use quintet_kernel::change::UnrecordedChange;
use quintet_kernel::port::{BlobBody, ToolOutput};
use quintet_kernel::tool::Ending;
use serde_json::json;

use crate::bench::{Bench, changed, text};

async fn shell(bench: &Bench, command: &str) -> ToolOutput {
    bench.run("shell", json!({ "command": command })).await
}

/// What a command does to files; lines are joined by `|`.
async fn check(bench: &Bench, command: &str, expected: &[&str]) {
    let output = shell(bench, command).await;
    let got: Vec<_> = changed(&output).iter().map(|it| it.replace('\n', "|")).collect();
    assert_eq!(got, expected, "{command}: {}", text(&output));
    // Nothing is said beside the report.
    assert_eq!(output.outcome.parts.len(), 1, "{}", text(&output));
}

#[tokio::test]
async fn files_that_a_command_creates_changes_and_deletes_are_recorded() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "2\n"), ("src/c", "3\n"), (".gitignore", "target\n")]);
    check(&bench, "true", &[]).await;
    check(
        &bench,
        "echo x >> a; rm b; mkdir -p new/dir; echo y > new/dir/d; : > e.o; mv src/c src/d",
        &[
            "a: 1| > 1|x|",
            "b: 2| > -",
            "e.o: - > ",
            "new: - > /",
            "new/dir: - > /",
            "new/dir/d: - > y|",
            "src/c: 3| > -",
            "src/d: - > 3|",
        ],
    )
    .await;
    check(
        &bench,
        "rm -r new; echo 1 > a; exit 3",
        &["a: 1|x| > 1|", "new: / > -", "new/dir: / > -", "new/dir/d: y| > -"],
    )
    .await;
}

#[tokio::test]
async fn what_ends_as_it_was_is_no_change() {
    {
        let bench = Bench::new();
        bench.files(&[("a", "1\n"), ("b", "2\n")]);
        check(&bench, "touch a; echo 3 > b; echo 2 > b; cp b c; rm c; mv a x; mv x a", &[]).await;
    }
}

#[tokio::test]
async fn a_change_cannot_hide_behind_its_size_and_time() {
    {
        let bench = Bench::new();
        bench.files(&[("a", "1\n")]);
        check(&bench, "touch -d 2001-01-01 a", &[]).await;
        for (old, new) in [("1", "2"), ("2", "3"), ("3", "4")] {
            let command = format!("echo {new} > a; touch -d 2001-01-01 a");
            check(&bench, &command, &[&format!("a: {old}| > {new}|")]).await;
        }
    }
}

#[tokio::test]
async fn permissions_are_recorded() {
    {
        let bench = Bench::new();
        bench.write("a", "1");
        std::fs::set_permissions(bench.path().join("a"), Permissions::from_mode(0o644)).unwrap();
        let output = shell(&bench, "chmod 755 a").await;
        let [change] = &output.changes[..] else { panic!("{:?}", output.changes) };
        let modes = [&change.before, &change.after].map(|side| side.as_ref().unwrap().mode);
        assert_eq!(modes, [Some(0o644), Some(0o755)]);
    }
}

#[tokio::test]
async fn what_others_change_between_commands_is_not_theirs() {
    {
        let bench = Bench::new();
        bench.files(&[("a", "1\n"), ("b", "1\n")]);
        check(&bench, "echo 2 > a", &["a: 1| > 2|"]).await;
        bench.files(&[("a", "3\n"), ("c", "1\n")]);
        std::fs::remove_file(bench.path().join("b")).unwrap();
        check(&bench, "echo 4 >> a", &["a: 3| > 3|4|"]).await;
    }
}

#[tokio::test]
async fn a_cancelled_or_late_command_is_recorded() {
    {
        let bench = Bench::new();
        let command = "echo 1 > a; echo ready; sleep 100";
        let output = bench.run("shell", json!({ "command": command, "timeout_seconds": 5 })).await;
        assert_eq!(
            (output.outcome.ending, changed(&output)),
            (Ending::Failed, vec!["a: - > 1\n".into()])
        );
        std::fs::remove_file(bench.path().join("a")).unwrap();
        let cancel = async {
            crate::bench::until("both", || (bench.heard() == "ready\nready\n").then_some(())).await;
            bench.cancel();
        };
        let (output, ()) = tokio::join!(shell(&bench, command), cancel);
        assert_eq!(output.outcome.ending, Ending::Cancelled);
        assert_eq!(changed(&output), ["a: - > 1\n"]);
        // Nothing is begun any more, so nothing is there to be recorded.
        let output = shell(&bench, "echo 2 > a").await;
        assert_eq!((output.outcome.ending, output.changes), (Ending::Cancelled, vec![]));
    }
}

/// What is not recorded, as `path: how many, why`.
fn gaps(output: &ToolOutput) -> Vec<String> {
    let one = |gap: &UnrecordedChange| {
        let paths = gap.paths.map_or("?".to_owned(), |paths| paths.to_string());
        format!("{}: {paths}, {}", gap.path, gap.reason)
    };
    output.outcome.unrecorded.iter().map(one).collect()
}

#[tokio::test]
async fn links_are_recorded_and_not_followed() {
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("dir/b", "2\n")]);
    symlink(outside.path().join("secret"), bench.path().join("link")).unwrap();
    symlink(outside.path(), bench.path().join("folder")).unwrap();
    check(&bench, "rm a; ln -s dir/b a; ln -s nowhere c", &["a: 1| > @dir/b", "c: - > @nowhere"])
        .await;
    check(
        &bench,
        "mv dir real; ln -s real dir; rm link",
        &[
            "dir: / > @real",
            "dir/b: 2| > -",
            &format!("link: @{}/secret > -", outside.path().display()),
            "real: - > /",
            "real/b: - > 2|",
        ],
    )
    .await;
}

#[tokio::test]
async fn a_command_runs_even_if_nothing_can_be_recorded() {
    let bench = Bench::without_cache();
    let output = shell(&bench, "echo 1 > a").await;
    assert!(output.outcome.ok() && output.changes.is_empty(), "{}", text(&output));
    assert!(text(&output).contains("the cache folder cannot be used: "), "{}", text(&output));
    assert_eq!(bench.read("a"), "1\n");
}

#[tokio::test]
async fn two_commands_may_run_in_one_workspace() {
    {
        let bench = Bench::new();
        bench.files(&[("a", "1\n"), ("b", "1\n")]);
        let wait = |mine: &str, other: &str| {
            format!("echo 2 > {mine}; until grep -q 2 {other}; do sleep 0.01; done")
        };
        let (first, second) = (wait("a", "b"), wait("b", "a"));
        let (first, second) = tokio::join!(shell(&bench, &first), shell(&bench, &second));
        // Each may have begun before the other ended, but its own change is always known.
        assert!(changed(&first).contains(&"a: 1\n > 2\n".to_owned()), "{:?}", changed(&first));
        assert!(changed(&second).contains(&"b: 1\n > 2\n".to_owned()), "{:?}", changed(&second));
        check(&bench, "true", &[]).await;
    }
}

#[tokio::test]
async fn checks_are_recorded_too() {
    let bench = Bench::verifying(&["echo 1 > a", "echo 2 > b; false"]);
    let output = bench.run("verify", json!({})).await;
    assert_eq!(changed(&output), ["a: - > 1\n", "b: - > 2\n"]);
}

#[tokio::test]
async fn what_is_outside_is_not_recorded() {
    let bench = Bench::new();
    let output = shell(&bench, "echo 1 > $TMPDIR/x; mkdir $TMPDIR/y; mv $TMPDIR/y y").await;
    assert_eq!((changed(&output), gaps(&output)), (vec!["y: - > /".to_owned()], vec![]));
}

#[tokio::test]
async fn a_folder_with_something_new_in_it_stays() {
    let bench = Bench::new();
    bench.files(&[("file", "1\n")]);
    let output =
        shell(&bench, "mkdir -p made/deep; echo 1 > made/deep/x; rm file; mkdir file").await;
    bench.write("made/mine", "mine\n");
    bench.write("file/mine", "mine\n");
    let error = bench.put_back(output.changes.clone()).await.unwrap_err();
    assert_eq!(error, "nothing was changed: file/mine is new in file");
    std::fs::remove_file(bench.path().join("file/mine")).unwrap();
    for _ in 0..2 {
        assert_eq!(bench.put_back(output.changes.clone()).await, Ok(()));
        assert!(!bench.path().join("made/deep").exists());
        assert_eq!([bench.read("file"), bench.read("made/mine")], ["1\n", "mine\n"]);
    }
}

#[tokio::test]
async fn what_snapshots_do_not_cover_is_said() {
    let bench = Bench::new();
    bench.files(&[(".gitignore", "target\n*.log\n"), ("target/old", ""), ("a", "1\n")]);
    tick(&bench).await;
    check(&bench, "echo 2 > a; cat target/old", &["a: 1| > 2|"]).await;
    let command = "echo 1 > target/new; : > x.log; head -c 11000000 /dev/zero > big; : > $'\\xff'";
    let output = shell(&bench, command).await;
    assert_eq!(changed(&output), Vec::<String>::new());
    let expected = [
        ": ?, names that are not UTF-8",
        "big: 1, longer than 10 MiB",
        "target: 2, git ignores it",
        "x.log: 1, git ignores it",
    ];
    assert_eq!(gaps(&output), expected);
    let told = "[not recorded for an undo: names that are not UTF-8, big (longer than 10 MiB), \
                2 paths at target (git ignores it), x.log (git ignores it)]";
    assert!(text(&output).ends_with(told), "{}", text(&output));
    tick(&bench).await;
    let output = shell(&bench, "rm target/old x.log $'\\xff'").await;
    let expected =
        [": ?, names that are not UTF-8", "target: 1, git ignores it", "x.log: 1, git ignores it"];
    assert_eq!(gaps(&output), expected);
}

#[tokio::test]
async fn what_comes_under_other_rules_is_not_taken_for_new() {
    let bench = Bench::new();
    bench.files(&[(".gitignore", "data\n"), ("data/x", "1\n"), ("log", "1\n")]);
    let output = shell(&bench, "rm .gitignore; echo 3 > data/x; echo 4 > y").await;
    assert_eq!(changed(&output), [".gitignore: data\n > -", "y: - > 4\n"]);
    assert_eq!(gaps(&output), ["data: 2, git ignored it before"]);
    // What is ignored from now on is not taken for deleted.
    let output = shell(&bench, "echo log > .gitignore").await;
    assert_eq!(changed(&output), [".gitignore: - > log\n"]);
    assert_eq!(gaps(&output), ["log: 1, git ignores it now"]);
}

#[tokio::test]
async fn whatever_way_a_file_is_changed_it_is_recorded_and_undone() {
    let python = |code: &str| format!("python3 -c 'import os\n{code}'");
    let cases = [
        ("echo 2 > a".to_owned(), "a: 1| > 2|"),
        (python("os.truncate(\"a\", 1)"), "a: 1| > 1"),
        ("exec 3<a; echo y > /dev/fd/3".to_owned(), "a: 1| > y|"),
        ("ln -s ../a dir/l; echo 2 > dir/l; rm dir/l".to_owned(), "a: 1| > 2|"),
        ("echo 2 > b; mv b a".to_owned(), "a: 1| > 2|"),
        ("rm a; mkdir a".to_owned(), "a: 1| > /"),
        ("mkdir empty".to_owned(), "empty: - > /"),
        ("rmdir dir".to_owned(), "dir: / > -"),
        ("chmod 700 dir".to_owned(), "dir: / > /"),
        (
            python("f = open(\"a\", \"r+\")\nimport mmap\nmmap.mmap(f.fileno(), 0)[0] = 50"),
            "a: 1| > 2|",
        ),
        ("sed -i s/1/2/ a".to_owned(), "a: 1| > 2|"),
    ];
    for (command, expected) in cases {
        let bench = Bench::new();
        bench.write("a", "1\n");
        std::fs::create_dir(bench.path().join("dir")).unwrap();
        std::fs::set_permissions(bench.path().join("dir"), Permissions::from_mode(0o755)).unwrap();
        let before = bench.snapshot();
        check(&bench, &command, &[expected]).await;
        let changes = bench.traces().await.unwrap().changes;
        assert_eq!(bench.could_put_back(changes.clone()).await, Ok(()), "{command}");
        assert_eq!(bench.put_back(changes).await, Ok(()), "{command}");
        assert_eq!(bench.snapshot(), before, "{command}");
        let mode = bench.path().join("dir").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o755, "{command}");
    }
}

#[tokio::test]
async fn committed_content_is_not_copied_and_comes_back_from_git() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("dir/b", "2\n"), ("c", "3\n"), ("crlf", "4\r\n")]);
    bench.write(".gitattributes", "crlf text\n");
    commit(&bench);
    bench.write("c", "changed\n");
    let before = bench.snapshot();
    let output = shell(&bench, "touch a; rm -r dir; echo more >> c; echo x > crlf").await;
    let object = |path: &str| {
        let change = output.changes.iter().find(|it| it.path == path).unwrap();
        matches!(change.before.as_ref().unwrap().body, Some(BlobBody::Hash(_)))
    };
    let paths: Vec<_> = output.changes.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(paths, ["c", "crlf", "dir", "dir/b"]);
    assert_eq!([object("c"), object("crlf"), object("dir/b")], [false, false, true]);
    let diff = bench.diff(output.changes.clone()).await;
    assert!(diff.contains("--- a/dir/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-2\n"), "{diff}");
    assert_eq!(bench.put_back(output.changes).await, Ok(()));
    assert_eq!(bench.snapshot(), before);
    // What is as it was committed is known by the same name again.
    check(&bench, "echo 5 > a", &["a: ? > 5|"]).await;
    check(&bench, "echo 1 > a", &["a: 5| > ?"]).await;
}

#[tokio::test]
async fn commits_are_named_as_not_recorded() {
    let bench = Bench::new();
    bench.write("a", "1\n");
    bench.commit().await;
    tick(&bench).await;
    let output = shell(&bench, "git status; git log; cat a").await;
    assert_eq!(gaps(&output), Vec::<String>::new());
    let command = "git -c user.name=x -c user.email=x@example.org commit -q --allow-empty -m two";
    let output = shell(&bench, command).await;
    let why = "git's own files: commits, branches and what is staged";
    assert_eq!(gaps(&output), [format!(".git: 1, {why}")]);
    for command in [
        "echo 2 > b; git add b; rm b",
        "echo 3 > a; git add a; git status",
        "git rm -q --cached b",
        "git reset -q",
    ] {
        tick(&bench).await;
        let output = shell(&bench, command).await;
        assert_eq!(gaps(&output), [format!(".git: 1, {why}")], "{command}");
    }
}

#[tokio::test]
async fn a_command_that_a_crash_cut_off_is_recorded() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("dir/b", "2\n")]);
    shell(&bench, "echo 2 > a; rm -r dir; echo 3 > c").await;
    let bench = bench.restarted();
    let expected = ["a: 1\n > 2\n", "c: - > 3\n", "dir: / > -", "dir/b: 2\n > -"];
    assert_eq!(bench.cut_off().await.unwrap(), expected);
    let changes = bench.traces().await.unwrap().changes;
    assert_eq!(bench.put_back(changes).await, Ok(()));
    assert_eq!([bench.read("a"), bench.read("dir/b")], ["1\n", "2\n"]);
    bench.over();
    assert_eq!(bench.cut_off().await, None);
}

#[tokio::test]
async fn many_files_are_recorded_and_undone() {
    let bench = Bench::new();
    for n in 0..3000 {
        bench.files(&[(&format!("d{}/f{n}", n % 30), &format!("{n}\n"))]);
    }
    let before = bench.snapshot();
    let output = shell(&bench, "rm -rf d*; mkdir new; seq 3000 | (cd new && xargs touch)").await;
    assert_eq!((output.changes.len(), gaps(&output)), (3000 + 30 + 3001, vec![]));
    assert_eq!(bench.put_back(output.changes).await, Ok(()));
    assert_eq!(bench.snapshot(), before);
}

/// Commits everything, before any snapshot is taken.
#[expect(clippy::disallowed_methods, reason = "this is what a user did before")]
fn commit(bench: &Bench) {
    let command =
        "git init -q && git add -A && git -c user.name=x -c user.email=x@example.org commit -qm x";
    let ran = Command::new("sh").args(["-c", command]).current_dir(bench.path()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Waits until the clock that stamps files has moved on, so that what was written before does not
/// look new.
async fn tick(bench: &Bench) {
    let stamp = || {
        bench.write("clock", "");
        let found = std::fs::metadata(bench.path().join("clock")).unwrap();
        std::fs::remove_file(bench.path().join("clock")).unwrap();
        (found.ctime(), found.ctime_nsec())
    };
    let start = stamp();
    crate::bench::until("a later moment", || (stamp() > start).then_some(())).await;
}
