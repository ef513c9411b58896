//! Where the kernel does not say what commands write, a look before and after has to do.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, symlink};

use quintet_kernel::change::Gap;
use quintet_kernel::port::Output;
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
