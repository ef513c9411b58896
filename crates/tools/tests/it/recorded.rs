//! What commands do to files is recorded with their calls.

use std::fs::{File, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use quintet_kernel::port::Output;
use quintet_kernel::tool::Ending;
use serde_json::json;

use crate::bench::{Bench, changed, text};

async fn shell(bench: &Bench, command: &str) -> Output {
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
    bench.files(&[("a", "1\n"), ("b", "2\n"), ("src/c", "3\n"), (".gitignore", "target\n*.o\n")]);
    check(&bench, "true", &[]).await;
    check(
        &bench,
        "echo x >> a; rm b; mkdir -p new/dir target; echo y > new/dir/d; echo z > target/t; : > e.o; \
         mv src/c src/d",
        &["a: 1| > 1|x|", "b: 2| > -", "new/dir/d: - > y|", "src/c: 3| > -", "src/d: - > 3|"],
    ).await;
    check(&bench, "rm -r new target; echo 1 > a; exit 3", &["a: 1|x| > 1|", "new/dir/d: y| > -"])
        .await;
    check(&bench, "git init -q && git add -A && cat a", &[]).await;
}

#[tokio::test]
async fn what_ends_as_it_was_is_no_change() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "2\n")]);
    check(&bench, "touch a; echo 3 > b; echo 2 > b; cp b c; rm c; mv a x; mv x a", &[]).await;
}

#[tokio::test]
async fn a_change_cannot_hide_behind_its_size_and_time() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n")]);
    check(&bench, "touch -d 2001-01-01 a", &[]).await;
    for (old, new) in [("1", "2"), ("2", "3"), ("3", "4")] {
        let command = format!("echo {new} > a; touch -d 2001-01-01 a");
        check(&bench, &command, &[&format!("a: {old}| > {new}|")]).await;
    }
}

#[tokio::test]
async fn permissions_are_recorded() {
    let bench = Bench::new();
    bench.write("a", "1");
    std::fs::set_permissions(bench.path().join("a"), Permissions::from_mode(0o644)).unwrap();
    let output = shell(&bench, "chmod 755 a").await;
    let [change] = &output.changes[..] else { panic!("{:?}", output.changes) };
    let modes = [&change.before, &change.after].map(|side| side.as_ref().unwrap().mode);
    assert_eq!(modes, [Some(0o644), Some(0o755)]);
}

#[tokio::test]
async fn what_others_change_between_commands_is_not_theirs() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "1\n")]);
    check(&bench, "echo 2 > a", &["a: 1| > 2|"]).await;
    bench.files(&[("a", "3\n"), ("c", "1\n")]);
    std::fs::remove_file(bench.path().join("b")).unwrap();
    check(&bench, "echo 4 >> a", &["a: 3| > 3|4|"]).await;
}

#[tokio::test]
async fn a_cancelled_or_late_command_is_recorded() {
    let bench = Bench::new();
    let command = "echo 1 > a; echo ready; sleep 100";
    let output = bench.run("shell", json!({ "command": command, "timeout_seconds": 1 })).await;
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

#[tokio::test]
async fn other_rules_of_what_is_ignored_neither_delete_nor_create_files() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "2\n"), ("log", "3\n"), (".gitignore", "log\n")]);
    // What was ignored is known no more, what is ignored is known all the same.
    let output = shell(&bench, "echo b > .gitignore; echo 4 > log; echo 5 > new").await;
    assert_eq!(changed(&output), [".gitignore: log\n > b\n", "new: - > 5\n"]);
    let note = "}\n[changes are not recorded of 1 file that git ignored before]";
    assert!(text(&output).ends_with(note), "{}", text(&output));
    check(
        &bench,
        "echo 'b|log' | tr '|' '\\n' > .gitignore; echo 6 > log; echo 7 > b",
        &[".gitignore: b| > b|log|", "log: 4| > 6|"],
    )
    .await;
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
            "dir: - > @real",
            "dir/b: 2| > -",
            &format!("link: @{}/secret > -", outside.path().display()),
            "real/b: - > 2|",
        ],
    )
    .await;
}

#[tokio::test]
async fn large_files_are_recorded_without_their_content() {
    let bench = Bench::new();
    let output = shell(&bench, "head -c 17000000 /dev/zero > big").await;
    assert_eq!(changed(&output), ["big: - > ?"]);
    assert_eq!(output.changes[0].after.as_ref().unwrap().size, 17_000_000);
    check(&bench, "ls", &[]).await;
    check(&bench, "echo >> big", &["big: ? > ?"]).await;
    check(&bench, "rm big", &["big: ? > -"]).await;
}

#[tokio::test]
async fn names_that_are_no_text_are_left_out() {
    let bench = Bench::new();
    check(&bench, r"echo 1 > $'\xff'; echo 2 > 'é b'", &["é b: - > 2|"]).await;
}

#[tokio::test]
async fn what_is_too_much_is_said_once_a_turn() {
    let bench = Bench::new();
    for number in 0..65 {
        let file = File::create(bench.path().join(number.to_string())).unwrap();
        file.set_len(16 * 1024 * 1024).unwrap();
    }
    let output = shell(&bench, "echo 1 > a").await;
    assert!(output.outcome.ok() && output.changes.is_empty());
    let note = "}\n[what commands do to files is not recorded here and cannot be undone: the files of \
                the workspace are more than 1024 MiB]";
    assert!(text(&output).ends_with(note), "{}", text(&output));
    assert!(text(&shell(&bench, "echo 1 > a").await).ends_with('}'));
}

#[tokio::test]
async fn too_many_files_are_not_looked_at() {
    let bench = Bench::new();
    for number in 0..=50_000 {
        File::create(bench.path().join(number.to_string())).unwrap();
    }
    let output = shell(&bench, "true").await;
    assert!(
        text(&output).ends_with("the workspace has more than 50000 files]"),
        "{}",
        text(&output)
    );
}

#[tokio::test]
async fn a_command_runs_even_if_nothing_can_be_recorded() {
    let bench = Bench::without_cache();
    let output = shell(&bench, "echo 1 > a").await;
    assert!(output.outcome.ok() && output.changes.is_empty());
    assert!(text(&output).contains("the cache folder cannot be used: "), "{}", text(&output));
    assert_eq!(bench.read("a"), "1\n");
}

#[tokio::test]
async fn two_commands_may_run_in_one_workspace() {
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

#[tokio::test]
async fn checks_are_recorded_too() {
    let bench = Bench::verifying(&["echo 1 > a", "echo 2 > b; false"]);
    let output = bench.run("verify", json!({})).await;
    assert_eq!(changed(&output), ["a: - > 1\n", "b: - > 2\n"]);
}
