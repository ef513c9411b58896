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
    let workspace = Snapshots::new(cache.path().join("snapshots")).workspace(dir.path()).unwrap();
    let take = || workspace.take(&Tracked::default(), &CancelFlag::default(), None).unwrap();
    // Files that were written a moment ago are read again.
    let stable = loop {
        let (one, other) = (take(), take());
        if one.is_same(&other) {
            break other;
        }
    };
    assert_eq!(workspace.since(&stable).unwrap(), Record::default());
    fs::write(dir.path().join("d/a"), "2").unwrap();
    let record = workspace.since(&stable).unwrap();
    assert_eq!(record.changes.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["d/a"]);
}

#[test]
fn a_snapshot_outlives_its_process() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("a"), "1").unwrap();
    let open = || Snapshots::new(cache.path().join("s")).workspace(dir.path()).unwrap();
    let workspace = open();
    let note = cache.path().join("notes/turn/call");
    workspace.take(&Tracked::default(), &CancelFlag::default(), Some(&note)).unwrap();
    fs::write(dir.path().join("a"), "2").unwrap();
    let base = Workspace::saved(&note).unwrap();
    assert_eq!(open().since(&base).unwrap().changes.len(), 1);
}
