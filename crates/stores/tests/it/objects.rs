//! Tests of content that is too long for the database.
//!
//! `make s3` runs these tests against an S3-compatible server; otherwise objects are in a folder.

use std::time::Duration;

use quintet_kernel::port::{Blobs, StorageError};
use quintet_stores::objects::{Location, ObjectSettings, probe};
use quintet_stores::postgres;
use quintet_testkit::postgres::Server;

use crate::blobs::{HELLO, check, check_store};
use crate::stores_under_test::{blob, node, node_with_objects, object_settings, settings};

/// The content of the database: blobs in rows, blobs in objects, and objects to be deleted.
fn counts(url: &str) -> String {
    let query =
        "SELECT count(body), count(object), (SELECT count(*) FROM unused_objects) FROM blobs";
    Server::shared().run_on(url, query)
}

/// A node that deletes nothing younger than a minute.
fn with_retention(url: &str, name: &str, objects: Option<&ObjectSettings>) -> postgres::Store {
    let (blob_grace, objects) = (Duration::from_secs(60), objects.cloned());
    let settings = postgres::Settings { blob_grace, objects, ..settings(url, name) };
    postgres::Store::open(&settings).unwrap()
}

#[tokio::test]
async fn objects_return_what_was_put() {
    let (url, objects) = (Server::shared().fresh(), object_settings());
    let store = node_with_objects(&url, "a", &objects);
    check_store(&store).await;
    // Empty content is not longer than a limit of 0.
    assert_eq!(counts(&url), "1|2|0");
    check(&with_retention(&url, "b", Some(&objects)), HELLO, "hello").await;
    probe(&objects).await.unwrap();
}

#[tokio::test]
async fn only_long_content_is_an_object() {
    let (url, objects) = (Server::shared().fresh(), object_settings());
    let limited = ObjectSettings { limit: 5, ..objects.clone() };
    let store = node_with_objects(&url, "a", &limited);
    let long = store.put(b"hello!".to_vec()).await.unwrap();
    store.put(b"hello".to_vec()).await.unwrap();
    assert_eq!(counts(&url), "1|1|0");
    // A node without an object store reports that, and has everything else.
    let poor = with_retention(&url, "b", None);
    check(&poor, HELLO, "hello").await;
    let refused = poor.get(&long).await;
    assert!(matches!(&refused, Err(StorageError::Unavailable(why)) if why.contains("store.blobs")));
    // Its own content is stored in the database.
    poor.put(b"hello!".to_vec()).await.unwrap();
    assert_eq!(counts(&url), "2|1|0");
    check(&poor, long.as_str(), "hello!").await;
}

#[tokio::test]
async fn a_missing_or_damaged_object_can_be_put_again() {
    let (url, folder) = (Server::shared().fresh(), tempfile::tempdir().unwrap());
    let location = Location::Folder(folder.path().into());
    let objects = ObjectSettings { location, ..object_settings() };
    let store = node_with_objects(&url, "a", &objects);
    store.put(b"hello".to_vec()).await.unwrap();
    let file = folder.path().join(&HELLO[..2]).join(format!("{}-1", &HELLO[2..]));
    std::fs::write(&file, "jello").unwrap();
    check(&store, HELLO, "damaged").await;
    store.put(b"hello".to_vec()).await.unwrap();
    check(&store, HELLO, "hello").await;
    std::fs::remove_file(&file).unwrap();
    check(&store, HELLO, "missing").await;
    store.put(b"hello".to_vec()).await.unwrap();
    check(&store, HELLO, "hello").await;
    assert_eq!(std::fs::read_dir(folder.path().join("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn content_that_is_put_while_it_is_deleted_stays() {
    let (url, objects) = (Server::shared().fresh(), object_settings());
    let store = with_retention(&url, "a", Some(&objects));
    let id = store.put(b"x".to_vec()).await.unwrap();
    // A node that deletes immediately finds the content unreferenced, but cannot delete the object.
    drop(node(&url, "b"));
    assert_eq!(counts(&url), "0|0|1");
    assert_eq!(store.put(b"x".to_vec()).await.unwrap(), id);
    assert_eq!(counts(&url), "0|1|1");
    // The object is deleted now.
    drop(with_retention(&url, "b", Some(&objects)));
    assert_eq!(counts(&url), "0|1|0");
    check(&store, id.as_str(), "x").await;
    drop(node_with_objects(&url, "b", &objects));
    check(&store, id.as_str(), "missing").await;
    assert_eq!(counts(&url), "0|0|0");
}

#[tokio::test]
async fn an_unreachable_object_store_does_not_prevent_the_start() {
    let url = Server::shared().fresh();
    let nowhere = "s3://quintet?endpoint=http://127.0.0.1:9";
    let location = Location::parse(nowhere, None).unwrap();
    let objects = ObjectSettings { location, ..object_settings() };
    let store = node_with_objects(&url, "a", &objects);
    let failed = store.put(b"x".to_vec()).await.unwrap_err().to_string();
    assert!(failed.contains("the object store cannot be reached"), "{failed}");
    assert!(!failed.contains("Signature"), "{failed}");
    let failed = store.get(&blob("x")).await;
    assert!(matches!(failed, Err(StorageError::Unavailable(_))), "{failed:?}");
    let failed = probe(&objects).await.unwrap_err().to_string();
    assert!(failed.starts_with("s3://quintet/ cannot be used: "), "{failed}");
    // An object that was only registered is deleted like any other.
    drop(node_with_objects(&url, "b", &objects));
    assert_eq!(counts(&url), "0|0|1");
}
