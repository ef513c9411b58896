//! Tests of the data directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use quintet_kernel::follow::Delta;
use quintet_kernel::model::Channel;
use quintet_kernel::port::{Blobs, Drafts, Journal as _, Leases as _, SessionIndex};
use quintet_stores::{DataDir, Error};

use crate::drafts::piece as piece_at;
use crate::stores_under_test::{batch, session, summary};

#[tokio::test]
async fn every_kind_of_data_has_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er");
    let data = DataDir::open(&path).unwrap();
    assert_eq!(data.path(), path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(data.sqlite().unwrap().list(1).await.unwrap().is_empty());
    assert!(data.drafts(None).unwrap().load(&session("s")).unwrap().is_empty());
    data.blobs().unwrap().put(b"x".to_vec()).await.unwrap();
    let mut names: Vec<_> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["blobs", "drafts", "quintet.db", "quintet.lock"]);
}

#[test]
fn a_second_daemon_is_refused_for_as_long_as_the_first_may_write() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let refused = || {
        let error = DataDir::open(dir.path()).unwrap_err();
        assert!(matches!(error, Error::InUse(_)), "{error:?}");
        assert!(error.to_string().contains(&*dir.path().to_string_lossy()), "{error}");
    };
    refused();
    let store = data.sqlite().unwrap();
    drop(data);
    refused();
    drop(store);
    DataDir::open(dir.path()).unwrap();
}

#[test]
fn incomplete_blobs_are_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let half = dir.path().join("blobs/tmp/half");
    fs::create_dir_all(half.parent().unwrap()).unwrap();
    fs::write(&half, "ha").unwrap();
    DataDir::open(dir.path()).unwrap().blobs().unwrap();
    assert!(!half.exists());
}

#[tokio::test]
async fn an_unreferenced_blob_is_deleted_at_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let (store, blobs) = (data.sqlite().unwrap(), data.blobs().unwrap());
    let used = blobs.put(b"used".to_vec()).await.unwrap();
    // The command that refers to the blob was refused.
    let unused = blobs.put(b"unused".to_vec()).await.unwrap();
    let lease = store.acquire(&session("s")).await.unwrap();
    store.append(&lease, 0, batch(summary("s", 1, 1), &["#used"])).await.unwrap();
    drop((store, data));
    let data = DataDir::open(dir.path()).unwrap();
    let (store, blobs) = (data.sqlite().unwrap(), data.blobs().unwrap());
    assert_eq!(blobs.get(&used).await.unwrap(), b"used");
    assert!(blobs.get(&unused).await.is_err());
    drop((store, data));
    // Referenced blobs are not checked again.
    let data = DataDir::open(dir.path()).unwrap();
    let _store = data.sqlite().unwrap();
    assert_eq!(data.blobs().unwrap().get(&used).await.unwrap(), b"used");
}

fn piece(text: &str) -> Delta {
    piece_at(0, Channel::Text, text)
}

#[test]
fn drafts_are_in_the_runtime_directory_if_there_is_one() {
    let (home, runtime) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = DataDir::open(home.path()).unwrap();
    let earlier = data.drafts(None).unwrap();
    earlier.push(&session("s"), &piece("one")).unwrap();
    drop(earlier);
    let drafts = data.drafts(Some(runtime.path())).unwrap();
    assert_eq!(drafts.load(&session("s")).unwrap().len(), 1, "the draft is moved");
    drafts.push(&session("s"), &piece("two")).unwrap();
    drop(drafts);
    assert!(!home.path().join("drafts").exists());
    let again = data.drafts(Some(runtime.path())).unwrap();
    assert_eq!(again.load(&session("s")).unwrap().len(), 2);
    // Another daemon of the same user has its own directory.
    let other = tempfile::tempdir().unwrap();
    let other = DataDir::open(other.path()).unwrap().drafts(Some(runtime.path())).unwrap();
    assert!(other.load(&session("s")).unwrap().is_empty());
}

#[test]
fn drafts_stay_in_the_data_directory_if_the_runtime_directory_is_unusable() {
    let home = tempfile::tempdir().unwrap();
    let (data, file) = (DataDir::open(home.path()).unwrap(), home.path().join("file"));
    std::fs::write(&file, "").unwrap();
    let drafts = data.drafts(Some(&file)).unwrap();
    drafts.push(&session("s"), &piece("one")).unwrap();
    assert!(home.path().join("drafts/s").exists());
}

#[test]
fn drafts_are_found_without_the_earlier_runtime_directory() {
    let (home, runtime) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = DataDir::open(home.path()).unwrap();
    let drafts = data.drafts(Some(runtime.path())).unwrap();
    drafts.push(&session("s"), &piece("one")).unwrap();
    drop(drafts);
    let drafts = data.drafts(None).unwrap();
    assert_eq!(drafts.load(&session("s")).unwrap().len(), 1);
    drafts.push(&session("s"), &piece("two")).unwrap();
    drop(drafts);
    // Also by a start with another runtime directory.
    let other = tempfile::tempdir().unwrap();
    let drafts = data.drafts(Some(runtime.path())).unwrap();
    assert_eq!(drafts.load(&session("s")).unwrap().len(), 2);
    drop(drafts);
    let drafts = data.drafts(Some(other.path())).unwrap();
    assert_eq!(drafts.load(&session("s")).unwrap().len(), 2);
}

#[test]
fn drafts_outlive_the_runtime_directory() {
    let (home, runtime) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = DataDir::open(home.path()).unwrap();
    let drafts = data.drafts(Some(runtime.path())).unwrap();
    drafts.push(&session("s"), &piece("one")).unwrap();
    // As at a logout: the directory is deleted and cannot be created again.
    fs::remove_dir_all(runtime.path()).unwrap();
    fs::write(runtime.path(), "").unwrap();
    drafts.push(&session("s"), &piece("two")).unwrap();
    drafts.push(&session("t"), &piece("new")).unwrap();
    assert_eq!(drafts.load(&session("s")).unwrap().len(), 2);
    drop(drafts);
    let drafts = data.drafts(None).unwrap();
    assert_eq!(drafts.load(&session("s")).unwrap().len(), 2);
    assert_eq!(drafts.load(&session("t")).unwrap().len(), 1);
    fs::remove_file(runtime.path()).unwrap();
}
