//! Changes can be shown as one and turned back, all or none.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

use quintet_kernel::change::FileKind;
use quintet_kernel::port::{BlobBody, ChangedFile, FileContent};
use serde_json::json;

use crate::bench::Bench;

/// Something of everything that can happen to files.
const MESS: &str = "echo more >> text; printf 'no end' > new/end; rm gone; mv moved elsewhere; \
                    chmod 755 script; printf 'a\\0b' > binary; rm -r folder; echo f > folder; \
                    : > empty; printf 'x' > 'odd name'";

fn workspace() -> Bench {
    let bench = Bench::new();
    let lines: String = (1..40).map(|n| format!("line {n}\n")).collect();
    bench.files(&[
        ("text", &lines),
        ("gone", "1\n"),
        ("moved", "2\n3\n"),
        ("script", "4\n"),
        ("folder/a", "5\n"),
        ("new/old", "6"),
    ]);
    for file in ["text", "gone", "moved", "script", "folder/a", "new/old"] {
        let mode = Permissions::from_mode(0o644);
        std::fs::set_permissions(bench.path().join(file), mode).unwrap();
    }
    bench
}

async fn changes_of(bench: &Bench, command: &str) -> Vec<ChangedFile> {
    bench.run("shell", json!({ "command": command })).await.changes
}

/// Every file, what is in it and its permissions.
fn files(bench: &Bench) -> BTreeMap<String, (Vec<u8>, u32)> {
    let one = |(path, content): (std::path::PathBuf, Vec<u8>)| {
        let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let name = path.strip_prefix(bench.path()).unwrap().display().to_string();
        Some((name, (content, metadata.permissions().mode() & 0o7777)))
    };
    bench.snapshot().into_iter().filter_map(one).collect()
}

#[tokio::test]
async fn what_a_command_did_is_turned_back() {
    let bench = workspace();
    let before = files(&bench);
    let changes = changes_of(&bench, MESS).await;
    let after = files(&bench);
    assert_ne!(before, after);
    for _ in 0..2 {
        assert_eq!(bench.put_back(changes.clone()).await, Ok(()));
        assert_eq!(files(&bench), before);
    }
    // And forth again.
    let swap =
        |change: ChangedFile| ChangedFile { before: change.after, after: change.before, ..change };
    let forth = changes.into_iter().map(swap).filter(|change| !change.path.starts_with("folder"));
    assert_eq!(bench.put_back(forth.collect()).await, Ok(()));
    assert_eq!(bench.read("odd name"), "x");
    assert_eq!(bench.read("elsewhere"), "2\n3\n");
}

#[tokio::test]
async fn git_understands_the_diff() {
    let (bench, other) = (workspace(), workspace());
    let command = "sed -i 's/line 2.*/x/' text; printf 'no end' > new/end; rm gone; mv moved \
                   elsewhere; chmod 755 script; : > empty; printf x > 'odd name'; printf y > '\"q\"'; ln -s text link; \
                   rm new/old; ln -s text new/old; printf z > $'n\\n'; mv folder/a folder/c";
    let diff = bench.diff(changes_of(&bench, command).await).await;
    let patch = other.path().parent().unwrap().join(format!("{}.patch", std::process::id()));
    std::fs::write(&patch, &diff).unwrap();
    std::fs::rename(&patch, other.path().join("the.patch")).unwrap();
    let output =
        other.run("shell", json!({ "command": "git apply the.patch && rm the.patch" })).await;
    assert!(output.outcome.ok(), "{}\n{diff}", crate::bench::text(&output));
    assert_eq!(files(&other), files(&bench), "{diff}");
}

#[tokio::test]
async fn what_somebody_changed_since_stays() {
    let bench = workspace();
    let big = "echo x > big; rm gone; echo x > text; echo y > moved; echo z > s";
    let mut changes = changes_of(&bench, big).await;
    bench.write("big", "y");
    changes.iter_mut().find(|it| it.path == "big").unwrap().after.as_mut().unwrap().body = None;
    bench.write("gone", "mine\n");
    bench.write("text", "mine\n");
    std::fs::remove_file(bench.path().join("s")).unwrap();
    let before = bench.snapshot();
    let refused = "nothing was changed: what was in big was not kept; gone is there again; text was \
                   changed since";
    assert_eq!(bench.put_back(changes).await, Err(refused.to_owned()));
    assert_eq!(bench.snapshot(), before);
}

#[tokio::test]
async fn each_reason_is_given() {
    let cases = [
        ("echo x >> text", "rm text", "text was deleted since"),
        ("echo x >> text", "echo y >> text", "text was changed since"),
        ("echo x >> text", "chmod 600 text", "text was changed since"),
        ("echo x >> text", "rm text; ln -s gone text", "text was changed since"),
        ("ln -s text link", "ln -sf gone link", "link was changed since"),
        ("ln -s text link", "rm link; cp text link", "link was changed since"),
        ("rm text", "mkdir text", "text is there again"),
        ("rm text", "ln -s nowhere text", "text is there again"),
        ("rm text", "echo z > text", "text is there again"),
        ("rm text", "head -c 17000000 /dev/zero > text", "text is there again"),
        ("rm folder/a", "rmdir folder; ln -s new folder", "folder/a is behind a link now"),
        ("rm folder/a", "rmdir folder; ln -s / folder", "path is outside the workspace: folder/a"),
    ];
    for (command, meanwhile, reason) in cases {
        let bench = workspace();
        let changes = changes_of(&bench, command).await;
        changes_of(&bench, meanwhile).await;
        let refused = Err(format!("nothing was changed: {reason}"));
        assert_eq!(bench.put_back(changes).await, refused, "{command}; {meanwhile}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_written_leaves_the_others_as_they_were() {
    let bench = workspace();
    let changes = changes_of(&bench, "rm text new/old gone; rmdir new").await;
    // Where the folder should be made there is a link that leads nowhere.
    symlink("nowhere", bench.path().join("new")).unwrap();
    let before = bench.snapshot();
    let error = bench.put_back(changes).await.unwrap_err();
    assert!(error.starts_with("nothing was changed: "), "{error}");
    assert_eq!(bench.snapshot(), before);
}

#[tokio::test]
async fn nothing_outside_is_touched() {
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("x"), "new").unwrap();
    let bench = Bench::new();
    symlink(outside.path(), bench.path().join("out")).unwrap();
    let content = |text: &str| {
        let (body, size) = (Some(BlobBody::Bytes(text.as_bytes().to_vec())), text.len() as u64);
        Some(FileContent { body, size, mode: None, shape: FileKind::File })
    };
    let name = outside.path().file_name().unwrap().to_str().unwrap();
    for path in
        ["out/x".to_owned(), format!("../{name}/x"), format!("{}/x", outside.path().display())]
    {
        let (before, after) = (content("old"), content("new"));
        let change = ChangedFile { path: path.clone(), before, after };
        assert!(bench.put_back(vec![change]).await.is_err(), "{path}");
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("x")).unwrap(), "new");
}

/// Every link and where it leads.
fn links(bench: &Bench) -> BTreeMap<std::path::PathBuf, std::path::PathBuf> {
    let one = |(path, _): (std::path::PathBuf, _)| {
        std::fs::read_link(&path).ok().map(|target| (path, target))
    };
    bench.snapshot().into_iter().filter_map(one).collect()
}

#[tokio::test]
async fn links_are_turned_back_too() {
    let outside = tempfile::TempDir::new().unwrap();
    std::fs::write(outside.path().join("x"), "mine").unwrap();
    for command in [
        "ln -s text link; ln -s / root; ln -sf gone old; rm nowhere",
        "rm text; ln -s gone text; rm old; echo file > old",
        "mv folder real; ln -s real folder; mv old new/old",
        &format!("rm -r folder; ln -s {} folder; ln -sfn folder nowhere", outside.path().display()),
    ] {
        let bench = workspace();
        symlink("text", bench.path().join("old")).unwrap();
        symlink("no/where", bench.path().join("nowhere")).unwrap();
        let before = (files(&bench), links(&bench));
        let changes = changes_of(&bench, command).await;
        assert_ne!((files(&bench), links(&bench)), before, "{command}");
        for _ in 0..2 {
            assert_eq!(bench.put_back(changes.clone()).await, Ok(()), "{command}");
            assert_eq!((files(&bench), links(&bench)), before, "{command}");
        }
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("x")).unwrap(), "mine");
}

#[tokio::test]
async fn what_somebody_changed_in_between_stays() {
    let bench = workspace();
    let change = async |command: &str| changes_of(&bench, command).await;
    let mut changes = change("echo x > text; echo y > moved").await;
    bench.write("text", "mine\n");
    changes.extend(change("echo z >> text").await);
    let before = bench.snapshot();
    let refused = "nothing was changed: text was changed by somebody else meanwhile";
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!(bench.put_back(changes.clone()).await, Err(refused.to_owned()));
    assert_eq!(bench.snapshot(), before);
    // Who turns it back by hand has taken a side.
    let lines: String = (1..40).map(|n| format!("line {n}\n")).collect();
    bench.write("text", lines);
    assert_eq!(bench.put_back(changes).await, Ok(()));
    assert_eq!(bench.read("moved"), "2\n3\n");
}
