//! Tests that measurements are stored and invalid ones ignored.

use super::{ThreadChoice, Tuning, TuningFile};
use crate::weights;

#[test]
fn hyperthreads_are_considered() {
    assert_eq!(ThreadChoice::UpTo(16).candidates(), [16, 8, 4]);
    assert_eq!(ThreadChoice::UpTo(2).candidates(), [2, 1]);
    assert_eq!(ThreadChoice::UpTo(0).candidates(), [1]);
    assert_eq!(ThreadChoice::Fixed(3).candidates(), [3]);
}

#[test]
fn values_are_stored_by_model_and_machine() {
    let dir = tempfile::tempdir().unwrap();
    let small = weights::find("small").unwrap();
    let file = |threads| TuningFile::new(dir.path(), small, threads);
    let tuning = Tuning { threads: 2, batch_tokens: 128 };
    assert_eq!(file(ThreadChoice::UpTo(2)).load(), None);
    file(ThreadChoice::UpTo(2)).save(tuning);
    assert_eq!(file(ThreadChoice::UpTo(2)).load(), Some(tuning));
    assert_eq!(file(ThreadChoice::UpTo(4)).load(), None, "another number of free processors");
    assert_eq!(dir.path().join("read").read_dir().unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn an_invalid_file_is_measured_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = TuningFile::new(dir.path(), weights::default(), ThreadChoice::UpTo(2));
    file.save(Tuning { threads: 2, batch_tokens: 64 });
    for damaged in
        ["", "{", r#"{"threads":0,"batch_tokens":64}"#, r#"{"threads":2,"batch_tokens":7}"#]
    {
        std::fs::write(&file.path, damaged).unwrap();
        assert_eq!(file.load(), None, "{damaged}");
    }
}
