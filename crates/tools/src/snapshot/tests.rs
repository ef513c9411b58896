//! Snapshots of a workspace in which nothing changed, and what git says of one.

use super::*;

#[test]
fn an_unchanged_workspace_keeps_its_snapshot() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/a"), "1").unwrap();
    let snapshots = Snapshots::new(cache.path().join("snapshots"));
    let workspace = snapshots.workspace(dir.path()).unwrap();
    let flag = Flag::default();
    let take = || workspace.keep(workspace.list(&flag).unwrap(), &HashMap::new(), &flag).unwrap();
    // Files that were written a moment ago are read again.
    let settled = loop {
        let (one, other) = (take(), take());
        if Arc::ptr_eq(&one.index, &other.index) {
            break other;
        }
    };
    assert_eq!(workspace.since(&settled).unwrap(), Record::default());
    fs::write(dir.path().join("d/a"), "2").unwrap();
    let record = workspace.since(&settled).unwrap();
    assert_eq!(record.changes.iter().map(|it| it.path.as_str()).collect::<Vec<_>>(), ["d/a"]);
}

#[test]
fn a_snapshot_outlives_its_process() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("a"), "1").unwrap();
    let open = || Snapshots::new(cache.path().join("s")).workspace(dir.path()).unwrap();
    let (workspace, flag) = (open(), Flag::default());
    let base = workspace.keep(workspace.list(&flag).unwrap(), &HashMap::new(), &flag).unwrap();
    let note = cache.path().join("notes/turn/call");
    workspace.save(&base, &note).unwrap();
    fs::write(dir.path().join("a"), "2").unwrap();
    let base = Workspace::saved(&note).unwrap();
    assert_eq!(open().since(&base).unwrap().changes.len(), 1);
}
