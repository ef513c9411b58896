//! Where the kernel does not say what commands write, a look before and after has to do.

use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use quintet_kernel::change::Gap;
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
    let bench = Bench::surveying();
    bench.files(&[("a", "1\n"), ("b", "2\n"), ("src/c", "3\n"), (".gitignore", "target\n*.o\n")]);
    check(&bench, "true", &[]).await;
    check(
        &bench,
        "echo x >> a; rm b; mkdir -p new/dir; echo y > new/dir/d; : > e.o; mv src/c src/d",
        &[
            "a: 1| > 1|x|",
            "b: 2| > -",
            "e.o: - > ",
            "new/dir/d: - > y|",
            "src/c: 3| > -",
            "src/d: - > 3|",
        ],
    )
    .await;
    check(&bench, "rm -r new; echo 1 > a; exit 3", &["a: 1|x| > 1|", "new/dir/d: y| > -"]).await;
    check(&bench, "git init -q && git add -A && cat a", &[]).await;
}

#[tokio::test]
async fn what_ends_as_it_was_is_no_change() {
    let bench = Bench::surveying();
    bench.files(&[("a", "1\n"), ("b", "2\n")]);
    check(&bench, "touch a; echo 3 > b; echo 2 > b; cp b c; rm c; mv a x; mv x a", &[]).await;
}

#[tokio::test]
async fn a_change_cannot_hide_behind_its_size_and_time() {
    let bench = Bench::surveying();
    bench.files(&[("a", "1\n")]);
    check(&bench, "touch -d 2001-01-01 a", &[]).await;
    for (old, new) in [("1", "2"), ("2", "3"), ("3", "4")] {
        let command = format!("echo {new} > a; touch -d 2001-01-01 a");
        check(&bench, &command, &[&format!("a: {old}| > {new}|")]).await;
    }
}

#[tokio::test]
async fn permissions_are_recorded() {
    let bench = Bench::surveying();
    bench.write("a", "1");
    std::fs::set_permissions(bench.path().join("a"), Permissions::from_mode(0o644)).unwrap();
    let output = shell(&bench, "chmod 755 a").await;
    let [change] = &output.changes[..] else { panic!("{:?}", output.changes) };
    let modes = [&change.before, &change.after].map(|side| side.as_ref().unwrap().mode);
    assert_eq!(modes, [Some(0o644), Some(0o755)]);
}

#[tokio::test]
async fn what_others_change_between_commands_is_not_theirs() {
    let bench = Bench::surveying();
    bench.files(&[("a", "1\n"), ("b", "1\n")]);
    check(&bench, "echo 2 > a", &["a: 1| > 2|"]).await;
    bench.files(&[("a", "3\n"), ("c", "1\n")]);
    std::fs::remove_file(bench.path().join("b")).unwrap();
    check(&bench, "echo 4 >> a", &["a: 3| > 3|4|"]).await;
}

#[tokio::test]
async fn a_cancelled_or_late_command_is_recorded() {
    let bench = Bench::surveying();
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

/// What is not recorded, as `path: how many, why`, beside that nobody says what commands write.
fn gaps(output: &Output) -> Vec<String> {
    let one = |gap: &Gap| {
        let paths = gap.paths.map_or("?".to_owned(), |paths| paths.to_string());
        format!("{}: {paths}, {}", gap.path, gap.reason)
    };
    let mut gaps: Vec<_> = output.outcome.unrecorded.iter().map(one).collect();
    let why = "commands run without a sandbox, so only a look before and after shows what they did";
    assert_eq!(gaps.pop(), Some(format!(": ?, {why}")));
    gaps
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

#[tokio::test]
async fn what_is_ignored_is_recorded_too() {
    let bench = Bench::surveying();
    bench.files(&[
        ("a", "1\n"),
        ("log", "3\n"),
        (".gitignore", "log\n/cache\n"),
        ("cache/x/y", "4\n"),
    ]);
    check(
        &bench,
        "echo 4 > log; rm cache/x/y; echo 5 > cache/z",
        &["cache/x/y: 4| > -", "cache/z: - > 5|", "log: 3| > 4|"],
    )
    .await;
    // Whether it is ignored makes no difference.
    check(&bench, "echo a > .gitignore", &[".gitignore: log|/cache| > a|"]).await;
    check(&bench, "rm .gitignore; echo 2 > a", &[".gitignore: a| > -", "a: 1| > 2|"]).await;
}

#[tokio::test]
async fn what_builds_make_is_not_recorded_and_that_is_said() {
    let bench = Bench::surveying();
    bench.files(&[(".gitignore", "target\nnode_modules\n"), ("target/old", ""), ("a", "1\n")]);
    tick(&bench).await;
    check(&bench, "echo 2 > a; cat target/old", &["a: 1| > 2|"]).await;
    let output =
        shell(&bench, "echo 1 > target/new; mkdir -p b/node_modules/c; : > b/node_modules/c/d")
            .await;
    let why = "git ignores it, and builds make it anew";
    let expected = [format!("b/node_modules: 2, {why}"), format!("target: 1, {why}")];
    assert_eq!((changed(&output), gaps(&output)), (vec![], expected.to_vec()));
    let note = format!(
        "}}\n[not recorded for an undo: 2 paths at b/node_modules ({why}), 1 path at target ({why})]"
    );
    assert!(text(&output).ends_with(&note), "{}", text(&output));
    // The model has heard of it, whoever looks at the changes has not.
    let output = shell(&bench, "rm -r target/old b/node_modules").await;
    assert!(text(&output).ends_with('}'), "{}", text(&output));
    assert!(gaps(&output).contains(&format!("b/node_modules: ?, {why}")), "{:?}", gaps(&output));
    assert!(gaps(&output).iter().any(|gap| gap.starts_with("target: ")), "{:?}", gaps(&output));
}

#[tokio::test]
async fn much_that_is_ignored_is_left_alone() {
    let bench = Bench::surveying();
    bench.files(&[(".gitignore", "data\n"), ("data/x", "1\n")]);
    let output = shell(&bench, "seq 2000 | (cd data && xargs touch); echo 2 > data/x").await;
    assert_eq!(changed(&output), ["data/x: 1\n > 2\n"]);
    let why = "git ignores it, and it is too much to be kept";
    assert_eq!(gaps(&output), [format!("data: 2001, {why}")]);
    // What was not looked at may have been there, even if nothing is ignored any more.
    let output = shell(&bench, "rm .gitignore; echo 3 > data/x; echo 4 > y").await;
    assert_eq!(changed(&output), [".gitignore: data\n > -", "y: - > 4\n"]);
    assert_eq!(gaps(&output).len(), 1, "{:?}", gaps(&output));
}

#[tokio::test]
async fn links_are_recorded_and_not_followed() {
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("secret"), "s").unwrap();
    let bench = Bench::surveying();
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
    let bench = Bench::surveying();
    let output = shell(&bench, "head -c 17000000 /dev/zero > big").await;
    assert_eq!(changed(&output), ["big: - > ?"]);
    assert_eq!(output.changes[0].after.as_ref().unwrap().size, 17_000_000);
    let note = "}\n[the content of 1 changed file is too much to be kept for an undo]";
    assert!(text(&output).ends_with(note), "{}", text(&output));
    check(&bench, "ls", &[]).await;
    for (command, expected) in [("echo >> big", "big: ? > ?"), ("rm big", "big: ? > -")] {
        assert_eq!(changed(&shell(&bench, command).await), [expected]);
    }
}

#[tokio::test]
async fn names_that_are_no_text_are_said_to_be_left_out() {
    let bench = Bench::surveying();
    let output = shell(&bench, r"echo 1 > $'\xff'; echo 2 > 'é b'").await;
    assert_eq!(changed(&output), ["é b: - > 2\n"]);
    assert_eq!(gaps(&output), ["\u{fffd}: 1, its name is not text"]);
}

#[tokio::test]
async fn what_is_too_much_is_said_once_a_turn() {
    let bench = Bench::surveying();
    for number in 0..65 {
        let file = File::create(bench.path().join(number.to_string())).unwrap();
        file.set_len(16 * 1024 * 1024).unwrap();
    }
    let output = shell(&bench, "echo 1 > a").await;
    assert!(output.outcome.ok() && output.changes.is_empty());
    let note = "}\n[what commands do to files is not recorded here and cannot be undone: the files of \
                the workspace are more than 1024 MiB]";
    assert!(text(&output).ends_with(note), "{}", text(&output));
    let gap = [": ?, the files of the workspace are more than 1024 MiB"];
    assert_eq!(gaps(&output), gap);
    let output = shell(&bench, "echo 1 > a").await;
    assert!(text(&output).ends_with('}'));
    assert_eq!(gaps(&output), gap);
}

#[tokio::test]
async fn too_many_files_are_not_looked_at() {
    let bench = Bench::surveying();
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
async fn two_commands_may_run_in_one_workspace() {
    let bench = Bench::surveying();
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
