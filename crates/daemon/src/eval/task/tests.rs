//! Tests of the bundled tasks.

use super::{Kind, bundled};
use crate::cli::Set;

#[test]
fn there_are_forty_tasks_of_every_kind_and_fifteen_test_tasks() {
    let tasks = bundled();
    assert_eq!(tasks.len(), 40);
    assert_eq!(tasks.iter().filter(|task| task.set == Set::Test).count(), 15);
    let kinds = [
        Kind::Question,
        Kind::Find,
        Kind::Edit,
        Kind::Fix,
        Kind::Script,
        Kind::Rename,
        Kind::Git,
        Kind::Refuse,
    ];
    for kind in kinds {
        let of =
            |set: Set| tasks.iter().filter(|task| task.kind == kind && task.set == set).count();
        assert!(of(Set::Train) > 0 && of(Set::Test) > 0, "{}", kind.name());
    }
}

#[test]
fn every_task_has_something_to_check() {
    for task in bundled() {
        let check = &task.check;
        let looks_at_files =
            !check.contains.is_empty() || !check.lacks.is_empty() || check.unchanged;
        assert!(looks_at_files || check.command.is_some(), "{}", task.name);
        if check.unchanged {
            assert!(!check.answer.is_empty(), "{}", task.name);
        }
        let known = |path: &String| task.files.contains_key(path);
        assert!(check.restore.iter().all(known), "{}", task.name);
    }
}
