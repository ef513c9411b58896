//! Groups whose make-up is certain, which they are not from outside.

use std::path::Path;

use quintet_kernel::card::{Card, Status};
use quintet_kernel::event::{Event, Record, Seq};
use quintet_kernel::id::SessionId;
use quintet_kernel::model::Usage;
use quintet_kernel::port::{Batch, Lease};
use quintet_kernel::time::Time;
use tempfile::TempDir;

use super::*;
use crate::sqlite::open::open;

/// Commits groups of `session expected length-of-the-text`; gives what became of each.
#[track_caller]
fn check(db: &mut Connection, group: &[(&str, Seq, usize)], then: &str) {
    let group: Vec<_> =
        group.iter().map(|&(id, expected, size)| append(id, expected, size)).collect();
    let verdicts: Vec<_> = commit(db, &group).into_iter().map(word).collect();
    assert_eq!(verdicts.join(", "), then);
    assert!(db.is_autocommit(), "no transaction is left open");
}

fn word(verdict: Verdict) -> String {
    match verdict {
        Ok(head) => head.to_string(),
        Err(StorageError::Conflict(head)) => format!("conflict {head}"),
        Err(StorageError::Fenced) => "fenced".into(),
        Err(StorageError::Unavailable(_)) => "unavailable".into(),
        Err(other @ (StorageError::Missing(_) | StorageError::Damaged(_))) => other.to_string(),
    }
}

fn append(id: &str, expected: Seq, size: usize) -> Change {
    let session = SessionId::parse(id).unwrap();
    let card = Card {
        id: session.clone(),
        created: Time::default(),
        forked: None,
        model: None,
        head: 0,
        updated: Time::default(),
        status: Status::Active,
        workspace: "/".into(),
        system_prompt: None,
        labels: [].into(),
        title: "hello".into(),
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
    let batch = Batch { at: record.at, records: vec![record.into()], card };
    Append::new(&Lease { session, epoch: 1 }, expected, &batch).unwrap().into()
}

fn database() -> (TempDir, Connection) {
    let dir = tempfile::tempdir().unwrap();
    let (db, epoch) = open(&dir.path().join("test.db")).unwrap();
    assert_eq!(epoch, 1);
    (dir, db)
}

#[test]
fn a_conflict_spoils_nobody_else() {
    let (_dir, mut db) = database();
    check(&mut db, &[("a", 0, 1), ("b", 7, 1), ("a", 1, 1), ("c", 0, 1)], "1, conflict 0, 2, 1");
    check(&mut db, &[("a", 0, 1), ("b", 0, 1), ("a", 2, 1)], "conflict 2, 1, 3");
}

#[test]
fn what_does_not_fit_is_refused_and_the_rest_is_kept() {
    let (_dir, mut db) = database();
    db.query_row("PRAGMA max_page_count = 50", [], |_| Ok(())).unwrap();
    let group = [("a", 0, 1), ("b", 0, 1_000_000), ("b", 1, 1), ("c", 0, 1)];
    check(&mut db, &group, "1, unavailable, conflict 0, 1");
    check(&mut db, &[("b", 0, 1), ("a", 1, 1)], "1, 2");
}

#[test]
fn a_newer_owner_fences_an_older_writer_that_still_runs() {
    let (dir, mut db) = database();
    check(&mut db, &[("a", 0, 1)], "1");
    let path: &Path = &dir.path().join("test.db");
    let (_newer, epoch) = open(path).unwrap();
    assert_eq!(epoch, 2);
    check(&mut db, &[("a", 1, 1), ("b", 0, 1)], "fenced, fenced");
}
