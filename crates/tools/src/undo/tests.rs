//! Snapshots of unchanged workspaces, after crashes, and with several processes.

use std::fs;
use std::sync::Arc;

use super::git_objects::Tracked;
use super::store::WorkspaceSnapshots;
use super::*;
use crate::blocking::CancelFlag;

/// The snapshots of a workspace, as a process finds them that starts now.
fn open(cache: &Path, root: &Path) -> Arc<WorkspaceSnapshots> {
    Snapshots::new(cache.to_owned()).workspace(root).unwrap()
}

fn before(workspace: &WorkspaceSnapshots, root: &Path, entry: Option<&Path>) -> Base {
    workspace.before(root, Tracked::new, &CancelFlag::default(), entry).unwrap()
}

/// A snapshot whose stats are all trusted. Files that were written a moment ago are read again.
fn stable(workspace: &WorkspaceSnapshots, root: &Path) -> Base {
    loop {
        let [one, other] = [(); 2].map(|()| before(workspace, root, None));
        if Arc::ptr_eq(&one.snapshot, &other.snapshot) {
            return other;
        }
    }
}

fn paths(record: &Record) -> Vec<&str> {
    record.changes.iter().map(|it| it.path.as_str()).collect()
}

#[test]
fn an_unchanged_workspace_keeps_its_snapshot() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::create_dir(dir.path().join("d")).unwrap();
    fs::write(dir.path().join("d/a"), "1").unwrap();
    let workspace = open(cache.path(), dir.path());
    let base = stable(&workspace, dir.path());
    assert_eq!(workspace.since(dir.path(), &base).unwrap(), Record::default());
    fs::write(dir.path().join("d/a"), "2").unwrap();
    let record = workspace.since(dir.path(), &base).unwrap();
    assert_eq!(paths(&record), ["d/a"]);
}

#[test]
fn a_snapshot_outlives_its_process() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("a"), "1").unwrap();
    let workspace = open(cache.path(), dir.path());
    let entry = cache.path().join("notes/turn/call");
    fs::write(dir.path().join("b"), "1").unwrap();
    before(&workspace, dir.path(), Some(&entry));
    fs::remove_file(dir.path().join("b")).unwrap();
    // The same call again: the later snapshot counts.
    before(&workspace, dir.path(), Some(&entry));
    fs::write(dir.path().join("a"), "2").unwrap();
    let base = Base::load(&entry).unwrap();
    for cache in [cache.path(), &cache.path().join("other")] {
        assert_eq!(paths(&open(cache, dir.path()).since(dir.path(), &base).unwrap()), ["a"]);
    }
}

#[test]
fn a_new_pack_is_no_change() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("a"), "1").unwrap();
    fs::write(dir.path().join("b"), "1").unwrap();
    let workspace = open(cache.path(), dir.path());
    let object = "56a6051ca2b02b04ef92d5150c9ef600403cb1de".to_owned();
    let tracked = || Tracked::from([("b".to_owned(), object)]);
    let base = workspace.before(dir.path(), tracked, &CancelFlag::default(), None).unwrap();
    fs::remove_file(&base.snapshot.pack).unwrap();
    assert_eq!(workspace.since(dir.path(), &base).unwrap(), Record::default());
    assert_ne!(before(&workspace, dir.path(), None).snapshot.pack, base.snapshot.pack);
}

#[test]
fn processes_have_packs_of_their_own() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(dir.path().join("a"), "1").unwrap();
    let processes = [(); 2].map(|()| Snapshots::new(cache.path().to_owned()));
    let pack = |process: &Snapshots| {
        let workspace = process.workspace(dir.path()).unwrap();
        before(&workspace, dir.path(), None).snapshot.pack.clone()
    };
    let [one, other] = [pack(&processes[0]), pack(&processes[1])];
    assert_ne!(one, other);
    drop(processes);
    // The next process uses the first pack again.
    assert_eq!(pack(&Snapshots::new(cache.path().to_owned())).parent(), one.parent());
}

#[test]
fn temporary_files_of_a_crash_are_removed() {
    let (cache, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = dir.path().join(".quintet-1-2.tmp");
    fs::write(&file, "").unwrap();
    let pack = pack::Pack::create(cache.path(), 0).unwrap();
    let last = store::Last { snapshot: None, pack, is_saved: false };
    let scan = |seconds: i64| {
        let (tracked, cancel) = (Tracked::new(), CancelFlag::default());
        let at = last.pack.now().unwrap() + seconds * 1_000_000_000;
        let taken = scan::scan(dir.path(), at, &last, &tracked, &cancel).unwrap();
        assert!(taken.folders[0].entries.is_empty());
        file.exists()
    };
    assert!(scan(0));
    assert!(!scan(100));
}
