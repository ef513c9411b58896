//! What commands do to files is recorded with their calls.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

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
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "2\n"), ("src/c", "3\n"), (".gitignore", "target\n*.o\n")]);
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
    for bench in Bench::either() {
        bench.files(&[("a", "1\n"), ("b", "2\n")]);
        check(&bench, "touch a; echo 3 > b; echo 2 > b; cp b c; rm c; mv a x; mv x a", &[]).await;
    }
}

#[tokio::test]
async fn a_change_cannot_hide_behind_its_size_and_time() {
    for bench in Bench::either() {
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
    for bench in Bench::either() {
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
    for bench in Bench::either() {
        bench.files(&[("a", "1\n"), ("b", "1\n")]);
        check(&bench, "echo 2 > a", &["a: 1| > 2|"]).await;
        bench.files(&[("a", "3\n"), ("c", "1\n")]);
        std::fs::remove_file(bench.path().join("b")).unwrap();
        check(&bench, "echo 4 >> a", &["a: 3| > 3|4|"]).await;
    }
}

#[tokio::test]
async fn a_cancelled_or_late_command_is_recorded() {
    for bench in Bench::either() {
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
}

/// What is not recorded, as `path: how many, why`.
fn gaps(output: &Output) -> Vec<String> {
    let one = |gap: &Gap| {
        let paths = gap.paths.map_or("?".to_owned(), |paths| paths.to_string());
        format!("{}: {paths}, {}", gap.path, gap.reason)
    };
    output.outcome.unrecorded.iter().map(one).collect()
}

#[tokio::test]
async fn what_is_ignored_is_recorded_too() {
    for bench in Bench::either() {
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
async fn names_that_are_no_text_are_recorded_shown_and_turned_back() {
    for bench in Bench::either() {
        bench.write("plain", "1\n");
        shell(&bench, r"mkdir $'d\xfe'; echo 1 > $'d\xfe/old'; echo 1 > $'gone\xff'").await;
        let before = bench.snapshot();
        let command = r#"echo 2 > $'\xff'; echo 3 > 'é b'; echo 4 > '"\377"'; echo 5 >> $'d\xfe/old'; mv $'gone\xff' $'\n\xff'"#;
        let output = shell(&bench, command).await;
        let expected = [
            r#""\n\377": - > 1|"#,
            r#""\"\\377\"": - > 4|"#,
            r#""d\376/old": 1| > 1|5|"#,
            r#""gone\377": 1| > -"#,
            "é b: - > 3|",
            r#""\377": - > 2|"#,
        ];
        let mut got: Vec<_> = changed(&output).iter().map(|it| it.replace('\n', "|")).collect();
        got.sort_unstable();
        let mut expected = expected.map(str::to_owned);
        expected.sort_unstable();
        assert_eq!(got, expected);
        let diff = bench.diff(output.changes.clone()).await;
        assert!(diff.contains("diff --git \"a/d\\376/old\" \"b/d\\376/old\"\n"), "{diff}");
        assert!(diff.contains("rename from \"gone\\377\"\nrename to \"\\n\\377\"\n"), "{diff}");
        for _ in 0..2 {
            assert_eq!(bench.put_back(output.changes.clone()).await, Ok(()));
            assert_eq!(bench.snapshot(), before);
        }
        bench.write("é b", "mine\n");
        shell(&bench, r"echo 6 > $'\xff'").await;
        let error = bench.put_back(output.changes).await.unwrap_err();
        let expected = r#"nothing was changed: é b was changed since; "\377" was changed since"#;
        assert_eq!(error, expected);
    }
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
    for bench in Bench::either() {
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
async fn what_builds_make_is_recorded_like_the_rest() {
    let bench = Bench::new();
    bench.files(&[(".gitignore", "target\n"), ("target/0", "old\n"), ("src/main.c", "x\n")]);
    let make = "all: $(foreach n,$(shell seq 1 2000),target/$(n))\ntarget/%: src/main.c\n\t@cp src/main.c $@\n";
    bench.write("Makefile", make);
    let output = shell(&bench, "make -sj8 all && rm target/0").await;
    assert!(output.outcome.ok(), "{}", text(&output));
    assert_eq!((output.changes.len(), gaps(&output)), (2001, vec![]));
    assert_eq!(changed(&output)[..2], ["target/0: old\n > -", "target/1: - > ?"]);
    assert_eq!(bench.put_back(output.changes).await, Ok(()));
    let left: Vec<_> = std::fs::read_dir(bench.path().join("target")).unwrap().collect();
    assert_eq!((left.len(), bench.read("target/0")), (1, "old\n".to_owned()));
}

#[tokio::test]
async fn whatever_way_a_file_is_changed_it_is_recorded() {
    let python = |code: &str| format!("python3 -c 'import os\n{code}'");
    let cases = [
        ("echo 2 > a".to_owned(), "a: 1| > 2|"),
        (": > a".to_owned(), "a: 1| > "),
        (python("os.truncate(\"a\", 1)"), "a: 1| > 1"),
        ("exec 3<>a; echo x >&3".to_owned(), "a: 1| > x|"),
        ("exec 3<a; echo y > /dev/fd/3".to_owned(), "a: 1| > y|"),
        ("cd dir; echo 2 > ../a".to_owned(), "a: 1| > 2|"),
        ("ln -s ../a dir/l; echo 2 > dir/l; rm dir/l".to_owned(), "a: 1| > 2|"),
        ("ln -s new l; echo 2 > l; rm l".to_owned(), "new: - > 2|"),
        ("echo 2 > b; mv b a".to_owned(), "a: 1| > 2|"),
        ("rm a; mkdir a".to_owned(), "a: 1| > /"),
        ("mkfifo p".to_owned(), "p: - > |"),
        ("mkdir empty".to_owned(), "empty: - > /"),
        ("rmdir dir".to_owned(), "dir: / > -"),
        ("chmod 700 dir".to_owned(), "dir: / > /"),
        (
            python("f = open(\"a\", \"r+\")\nimport mmap\nmmap.mmap(f.fileno(), 0)[0] = 50"),
            "a: 1| > 2|",
        ),
        (
            python(
                "import threading\nt = threading.Thread(target=lambda: open(\"a\", \"w\"))\nt.start()\nt.join()",
            ),
            "a: 1| > ",
        ),
        (python("f = open(\"a\", \"r+\")\nos.rename(\"a\", \"b\")\nf.truncate(1)\nos.rename(\"b\", \"a\")"), "a: 1| > 1"),
        (
            python(
                "f = open(\"a\", \"r+\")\nimport mmap\nm = mmap.mmap(f.fileno(), 0)\nf.close()\nos.rename(\"dir\", \"d\")\nos.rename(\"d\", \"dir\")\nm[0] = 51\nm.flush()",
            ),
            "a: 1| > 3|",
        ),
        (
            python(
                "f = os.open(\".\", os.O_TMPFILE | os.O_RDWR)\nos.write(f, b\"t\")\nimport ctypes\nassert ctypes.CDLL(None).linkat(-100, f\"/proc/self/fd/{f}\".encode(), -100, b\"t\", 1024) == 0",
            ),
            "t: - > t",
        ),
        (python("f = open(\"a\", \"r+\")\nos.sendfile(f.fileno(), os.open(\"/etc/hostname\", 0), None, 0)\nos.posix_fallocate(f.fileno(), 0, 3)"), "a: 1| > 1|\0"),
        ("(setsid sh -c 'sleep 0.2; echo 2 > a; : > done' &) ; until [ -e done ]; do sleep 0.01; done; rm done".to_owned(), "a: 1| > 2|"),
        ("nohup sh -c 'echo 2 > a' > /dev/null 2>&1 & wait".to_owned(), "a: 1| > 2|"),
        ("echo 2 > b; echo 3 > c; mv b c; mv c a; mv a b; mv b a".to_owned(), "a: 1| > 2|"),
        ("cp a b; ln a c; mv -f b a; mv -f c b; rm b; chmod 600 a; chmod 644 a; echo 2 >> a".to_owned(), "a: 1| > 1|2|"),
        ("sed -i s/1/2/ a".to_owned(), "a: 1| > 2|"),
        ("(sleep 0.2; echo 2 > a) & exec 4>>a; wait; echo 3 >&4".to_owned(), "a: 1| > 2|3|"),
    ];
    for (command, expected) in cases {
        let bench = Bench::new();
        bench.write("a", "1\n");
        std::fs::create_dir(bench.path().join("dir")).unwrap();
        std::fs::set_permissions(bench.path().join("dir"), Permissions::from_mode(0o755)).unwrap();
        let before = bench.snapshot();
        check(&bench, &command, &[expected]).await;
        let changes = bench.traces().await.unwrap().changes;
        assert_eq!(bench.put_back(changes).await, Ok(()), "{command}");
        assert_eq!(bench.snapshot(), before, "{command}");
        let mode = bench.path().join("dir").metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o755, "{command}");
    }
}

#[tokio::test]
async fn files_and_folders_that_swap_their_names_are_recorded() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "2\n"), ("x/c", "3\n"), ("y/d", "4\n")]);
    let before = bench.snapshot();
    let swap = |one: &str, other: &str| {
        format!(
            "python3 -c 'import ctypes; assert ctypes.CDLL(None).renameat2(-100, b\"{one}\", -100, b\"{other}\", 2) == 0'"
        )
    };
    let command = format!("{}; {}", swap("a", "b"), swap("x", "y"));
    let expected =
        ["a: 1| > 2|", "b: 2| > 1|", "x/c: 3| > -", "x/d: - > 4|", "y/c: - > 3|", "y/d: 4| > -"];
    check(&bench, &command, &expected).await;
    let changes = bench.traces().await.unwrap().changes;
    assert_eq!(bench.put_back(changes).await, Ok(()));
    assert_eq!(bench.snapshot(), before);
}

#[tokio::test]
async fn there_is_no_way_to_write_that_nobody_is_asked_about() {
    let bench = Bench::new();
    // Calls in a ring are not made one by one, and what a handle opens has no name.
    let code = "import ctypes; c = ctypes.CDLL(None, use_errno=True); r = c.syscall(425, 1, ctypes.create_string_buffer(120)); \
                print(r, ctypes.get_errno()); r = c.open_by_handle_at(-100, ctypes.create_string_buffer(8), 2); \
                print(r, ctypes.get_errno())";
    let output = shell(&bench, &format!("python3 -c '{code}'")).await;
    let expected = format!("-1 {}\n-1 {}\n", libc::ENOSYS, libc::EPERM);
    assert_eq!(crate::bench::json(&output)["stdout"], expected, "{}", text(&output));
}

#[tokio::test]
async fn a_file_with_two_names_is_recorded_by_both() {
    let bench = Bench::new();
    bench.files(&[("a", "1\n"), ("b", "2\n"), ("dir/x", "")]);
    std::fs::hard_link(bench.path().join("a"), bench.path().join("dir/a")).unwrap();
    check(&bench, "echo 3 >> dir/a", &["a: 1| > 1|3|", "dir/a: 1| > 1|3|"]).await;
    // Also if the name is made on the way, and moved.
    check(&bench, "ln b c; echo 3 >> c; rm c", &["b: 2| > 2|3|"]).await;
    check(&bench, "ln b dir/c; mv dir d; echo 4 > d/c; mv d dir; rm dir/c", &["b: 2|3| > 4|"])
        .await;
}

#[tokio::test]
async fn folders_move_without_being_copied() {
    let bench = Bench::new();
    bench.files(&[("src/a", "1\n"), ("src/sub/b", "2\n"), ("src/c", "3\n"), ("src/d", "4\n")]);
    let before = bench.snapshot();
    let command = "mv src lib; echo x >> lib/a; rm lib/sub/b; mv lib/c lib/e; mv lib x; mv x lib; ! mv lib/d lib/sub/no/";
    check(
        &bench,
        command,
        &[
            "lib: - > /",
            "lib/a: - > 1|x|",
            "lib/d: - > 4|",
            "lib/e: - > 3|",
            "lib/sub: - > /",
            "src: / > -",
            "src/a: 1| > -",
            "src/c: 3| > -",
            "src/d: 4| > -",
            "src/sub: / > -",
            "src/sub/b: 2| > -",
        ],
    )
    .await;
    let changes = bench.traces().await.unwrap().changes;
    assert_eq!(bench.put_back(changes).await, Ok(()));
    assert_eq!(bench.snapshot(), before);
    let changes = shell(&bench, "mv src $TMPDIR/gone").await.changes;
    assert_eq!(changes.len(), 6);
    assert_eq!(bench.put_back(changes).await, Ok(()));
    assert_eq!(bench.snapshot(), before);
}

#[tokio::test]
async fn large_files_are_kept_on_disk() {
    let bench = Bench::new();
    let old = vec![b'a'; 20 << 20];
    bench.write("big", &old);
    let output =
        shell(&bench, "printf b | dd of=big bs=1 seek=17000000 conv=notrunc status=none").await;
    assert_eq!((output.changes.len(), gaps(&output)), (1, vec![]), "{}", text(&output));
    let diff = bench.diff(output.changes.clone()).await;
    assert!(
        diff.ends_with(
            "Large files a/big and b/big differ (20971520 bytes before, 20971520 bytes after)\n"
        ),
        "{diff}"
    );
    let mut new = old.clone();
    new[17_000_000] = b'b';
    assert!(std::fs::read(bench.path().join("big")).unwrap() == new);
    assert_eq!(bench.put_back(output.changes.clone()).await, Ok(()));
    assert!(std::fs::read(bench.path().join("big")).unwrap() == old);
    new[3] = b'c';
    bench.write("big", &new);
    let error = bench.put_back(output.changes).await.unwrap_err();
    assert_eq!(error, "nothing was changed: big was changed since");
}

#[tokio::test]
async fn more_than_the_user_allows_is_named_and_not_kept() {
    let bench = Bench::new();
    bench.write("big", vec![b'a'; 40 << 20]);
    bench.write("other", vec![b'a'; 40 << 20]);
    let output = shell(&bench, "rm big; rm other; echo 1 > a").await;
    let why = format!(
        ": ?, more than the {} bytes that `undo.limit_bytes` allows a call",
        crate::bench::UNDO / 4
    );
    assert_eq!(gaps(&output), [why]);
    let kept: Vec<_> =
        output.changes.iter().map(|it| it.before.as_ref().map(|it| it.body.is_some())).collect();
    assert_eq!(kept, [None, Some(true), Some(false)]);
    let error = bench.put_back(output.changes).await.unwrap_err();
    assert_eq!(error, "nothing was changed: what was in other was not kept");
}

#[tokio::test]
async fn what_is_outside_is_not_recorded() {
    let bench = Bench::new();
    let output = shell(&bench, "echo 1 > $TMPDIR/x; mkdir $TMPDIR/y; mv $TMPDIR/y y").await;
    assert_eq!((changed(&output), gaps(&output)), (vec!["y: - > /".to_owned()], vec![]));
}

#[tokio::test]
async fn what_was_built_anew_since_is_left_and_the_rest_undone() {
    let bench = Bench::new();
    bench.files(&[(".gitignore", "target\n"), ("src/a", "1\n"), ("dist/x", "1\n")]);
    let build = "mkdir -p target/d; cp src/a target/d/a; cp src/a target/d/b";
    let output = shell(&bench, &format!("echo 2 > src/a; {build}")).await;
    assert_eq!(gaps(&output), Vec::<String>::new());
    bench.write("target/d/a", "3\n");
    assert_eq!(bench.put_back(output.changes).await, Ok(()));
    let read = |name| bench.read(name);
    assert_eq!([read("src/a"), read("target/d/a"), read("target/d/b")], ["1\n", "3\n", "2\n"]);
    // What git does not ignore is nobody's to build anew.
    let output = shell(&bench, "echo 2 > dist/x").await;
    bench.write("dist/x", "3\n");
    let error = bench.put_back(output.changes).await.unwrap_err();
    assert_eq!(error, "nothing was changed: dist/x was changed since");
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
