//! Snapshots of a workspace in which nothing changed, and after a crash.

use std::fs;

use super::git_objects::Tracked;
use super::*;
use crate::blocking::CancelFlag;

#[test]
fn an_unchanged_workspace_keeps_its_snapshot() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/a"), "1").unwrap();
    let workspace = Snapshots::new(cache.path().join("snapshots")).workspace(dir.path());
    let take = || {
        workspace.take(dir.path(), |_| Tracked::default(), &CancelFlag::default(), None).unwrap()
    };
    // Files that were written a moment ago are read again.
    let stable = loop {
        let (one, other) = (take(), take());
        if one.is_same(&other) {
            break other;
        }
    };
    assert_eq!(workspace.since(dir.path(), &stable).unwrap(), Record::default());
    fs::write(dir.path().join("d/a"), "2").unwrap();
    let record = workspace.since(dir.path(), &stable).unwrap();
    assert_eq!(record.changes.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["d/a"]);
}

#[test]
fn a_snapshot_outlives_its_process() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("a"), "1").unwrap();
    let open = || Snapshots::new(cache.path().join("s")).workspace(dir.path());
    let workspace = open();
    let note = cache.path().join("notes/turn/call");
    fs::write(dir.path().join("b"), "1").unwrap();
    workspace
        .take(dir.path(), |_| Tracked::default(), &CancelFlag::default(), Some(&note))
        .unwrap();
    fs::remove_file(dir.path().join("b")).unwrap();
    // The same call once more: what it finds now is what counts.
    workspace
        .take(dir.path(), |_| Tracked::default(), &CancelFlag::default(), Some(&note))
        .unwrap();
    fs::write(dir.path().join("a"), "2").unwrap();
    let base = Base::saved(&note).unwrap();
    assert_eq!(open().since(dir.path(), &base).unwrap().changes.len(), 1);
}
