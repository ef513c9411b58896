//! Tests of groups of changes, which cannot be controlled from outside.

use std::path::Path;

use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::id::SessionId;
use quintet_kernel::model::Usage;
use quintet_kernel::port::{Alias, Batch};
use quintet_kernel::session_summary::{SessionSummary, Status};
use quintet_kernel::time::Time;
use tempfile::TempDir;

use super::*;
use crate::sqlite::append::Append;
use crate::sqlite::open::open;
use crate::sqlite::{aliases, erase};

/// Commits a group of `session expected length-of-the-text`; checks the result of each.
#[track_caller]
fn check(db: &mut Connection, group: &[(&str, Seq, usize)], then: &str) {
    let (mut group, answers): (Vec<_>, Vec<_>) =
        group.iter().map(|&(id, expected, size)| append(id, expected, size)).unzip();
    commit(db, &mut group);
    group.into_iter().for_each(Change::reply);
    let words: Vec<_> = answers.into_iter().map(word).collect();
    assert_eq!(words.join(", "), then);
    assert!(db.is_autocommit(), "no transaction is left open");
}

fn word(mut answer: oneshot::Receiver<WriteResult<Seq>>) -> String {
    match answer.try_recv().expect("each is answered") {
        Ok(head) => head.to_string(),
        Err(StorageError::Conflict(head)) => format!("conflict {head}"),
        Err(StorageError::Fenced) => "fenced".into(),
        Err(StorageError::Unavailable(_)) => "unavailable".into(),
        Err(
            other @ (StorageError::Missing(_) | StorageError::Damaged(_) | StorageError::Held(_)),
        ) => other.to_string(),
    }
}

/// A change by the first owner, and its result.
fn queued<T: Send + 'static>(
    make: impl Fn(&Connection) -> rusqlite::Result<WriteResult<T>> + Send + 'static,
) -> (Box<dyn Change>, oneshot::Receiver<WriteResult<T>>) {
    let (reply, answer) = oneshot::channel();
    (Box::new(QueuedChange { epoch: 1, make, answer: None, reply }), answer)
}

fn append(
    id: &str,
    expected: Seq,
    size: usize,
) -> (Box<dyn Change>, oneshot::Receiver<WriteResult<Seq>>) {
    let session = SessionId::parse(id).unwrap();
    let summary = SessionSummary {
        id: session.clone(),
        created: Time::default(),
        forked: None,
        model: None,
        head: 0,
        updated: Time::default(),
        status: Status::Active,
        workspace: "/".into(),
        labels: [].into(),
        title: "hello".into(),
        last_prompt: "hello again".into(),
        last_answer: String::new(),
        messages: 2,
        tokens: 30,
        usage: Usage::default(),
        context: 0,
        last_turn: None,
        error: None,
        open: false,
    };
    let event = Event::Labelled { key: "k".into(), value: Some("x".repeat(size)) };
    let record = Record { seq: expected + 1, at: Time::default(), event };
    let batch = Batch { records: vec![record.into()], summary };
    let append = Append::new(&session, expected, &batch).unwrap();
    queued(move |db| append.apply(db))
}

fn database() -> (TempDir, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let (db, epoch) = open(&dir.path().join("test.db")).unwrap();
    assert_eq!(epoch, 1);
    (dir, db)
}

#[test]
fn a_conflict_does_not_fail_other_changes() {
    let (_dir, mut db) = database();
    check(&mut db, &[("a", 0, 1), ("b", 7, 1), ("a", 1, 1), ("c", 0, 1)], "1, conflict 0, 2, 1");
    check(&mut db, &[("a", 0, 1), ("b", 0, 1), ("a", 2, 1)], "conflict 2, 1, 3");
}

#[test]
fn a_change_that_does_not_fit_fails_alone() {
    let (_dir, mut db) = database();
    db.query_row("PRAGMA max_page_count = 50", [], |_| Ok(())).unwrap();
    let group = [("a", 0, 1), ("b", 0, 1_000_000), ("b", 1, 1), ("c", 0, 1)];
    check(&mut db, &group, "1, unavailable, conflict 0, 1");
    check(&mut db, &[("b", 0, 1), ("a", 1, 1)], "1, 2");
}

#[test]
fn a_newer_owner_fences_an_older_writer() {
    let (dir, mut db) = database();
    check(&mut db, &[("a", 0, 1)], "1");
    let path: &Path = &dir.path().join("test.db");
    let (_newer, epoch) = open(path).unwrap();
    assert_eq!(epoch, 2);
    check(&mut db, &[("a", 1, 1), ("b", 0, 1)], "fenced, fenced");
}

/// Number of commits in the log, each of which was a sync.
fn commits(dir: &TempDir) -> usize {
    let log = std::fs::read(dir.path().join("test.db-wal")).unwrap();
    let size = u32::from_be_bytes(*log[8..].first_chunk().unwrap()) as usize;
    // The frame that ends a commit has the size of the database.
    log[32..].chunks(24 + size).filter(|frame| frame[4..8] != [0; 4]).count()
}

/// Queues changes together and runs the writer; returns the number of commits.
fn burst(dir: &TempDir, db: Connection, changes: Vec<Box<dyn Change>>) -> usize {
    let before = commits(dir);
    let (queue, waiting) = channel();
    changes.into_iter().for_each(|change| queue.send(change).unwrap());
    drop(queue);
    // Another connection keeps the log from being deleted with the last one.
    let _other = Connection::open(dir.path().join("test.db")).unwrap();
    _other.query_row("SELECT epoch FROM meta", [], |_| Ok(())).unwrap();
    run(db, &waiting, &WriteHealth::of(&dir.path().join("test.db")));
    commits(dir) - before
}

#[test]
fn a_burst_of_aliases_is_one_commit() {
    let (dir, db) = database();
    let name = |n: usize| {
        let (alias, id) = (Alias { space: "x".into(), name: n.to_string() }, format!("s{n}"));
        let session = SessionId::parse(&id).unwrap();
        queued(move |db| aliases::set(db, &alias, &session, None))
    };
    let (names, answers): (Vec<_>, Vec<_>) = (0..500).map(name).unzip();
    assert_eq!(burst(&dir, db, names), 1);
    for (n, mut answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.try_recv().unwrap().unwrap().as_str(), format!("s{n}"));
    }
}

#[test]
fn changes_of_all_kinds_keep_their_order() {
    let (dir, db) = database();
    let session = SessionId::parse("a").unwrap();
    let alias = Alias { space: "x".into(), name: "n".into() };
    let (named, gone) = (session.clone(), session.clone());
    let (named_alias, found) = (alias.clone(), alias);
    let (first, _first) = append("a", 0, 1);
    let (name, _name) = queued(move |db| aliases::set(db, &named_alias, &named, None));
    let (erase, _erase) = queued(move |db| erase::erase(db, &gone).map(Ok));
    let (look, mut seen) = queued(move |db| aliases::find(db, &found).map(Ok));
    let (again, mut begun) = append("a", 0, 1);
    assert_eq!(burst(&dir, db, vec![first, name, erase, look, again]), 1);
    assert_eq!(seen.try_recv().unwrap().unwrap(), None, "the alias was set before the deletion");
    assert_eq!(begun.try_recv().unwrap().unwrap(), 1);
}

#[test]
fn a_duplicate_does_not_fail_other_changes() {
    let (_dir, mut db) = database();
    let claim = "INSERT INTO claims (artifact, session) VALUES ('a', 's')";
    let twice = || queued(move |db| db.execute(claim, []).map(|_| Ok(())));
    let ((first, _first), (second, mut refused), (other, mut kept)) =
        (twice(), twice(), append("a", 0, 1));
    let mut group = vec![first, second, other];
    assert!(matches!(commit(&mut db, &mut group), Some(Ok(()))), "storage is healthy");
    group.into_iter().for_each(Change::reply);
    assert!(refused.try_recv().unwrap().is_err());
    assert_eq!(kept.try_recv().unwrap().unwrap(), 1);
}

#[tokio::test]
async fn the_end_of_the_thread_is_detected() {
    let (dir, db) = database();
    let writer = Writer::start(db, Arc::new(WriteHealth::of(&dir.path().join("test.db")))).unwrap();
    let mut ended = Box::pin(writer.ended());
    writer.change(1, |_| Ok(())).await.unwrap();
    let waits =
        std::future::poll_fn(|context| std::task::Poll::Ready(ended.as_mut().poll(context)));
    assert!(waits.await.is_pending());
    let broken = writer.change(1, |_| -> rusqlite::Result<()> { panic!("a bug") }).await;
    assert!(matches!(broken, Err(StorageError::Unavailable(_))), "{broken:?}");
    ended.await;
}
