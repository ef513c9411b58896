//! The directory of a daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use quintet_kernel::port::{Blobs, Drafts, SessionIndex};
use quintet_stores::{DataDir, Error};

use crate::subject::session;

#[tokio::test]
async fn everything_has_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep/er");
    let data = DataDir::open(&path).unwrap();
    assert_eq!(data.path(), path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(data.sqlite().unwrap().list(1).await.unwrap().is_empty());
    assert!(data.drafts().unwrap().load(&session("s")).unwrap().is_empty());
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
fn unfinished_blobs_are_swept_away() {
    let dir = tempfile::tempdir().unwrap();
    let half = dir.path().join("blobs/tmp/half");
    fs::create_dir_all(half.parent().unwrap()).unwrap();
    fs::write(&half, "ha").unwrap();
    DataDir::open(dir.path()).unwrap().blobs().unwrap();
    assert!(!half.exists());
}
