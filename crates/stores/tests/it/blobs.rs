//! Tests of blobs, in files and in memory.

use std::fs;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, Blobs, FileRange, StorageError};
use quintet_stores::{FileBlobs, PackBlobs, memory};

/// SHA-256 of "hello".
pub(crate) const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

pub(crate) async fn check(blobs: &dyn Blobs, id: &str, then: &str) {
    let answer = blobs.get(&BlobId::parse(id).expect("an id")).await;
    let answer = match answer {
        Ok(content) => String::from_utf8(content).expect("text"),
        Err(StorageError::Missing(_)) => "missing".into(),
        Err(StorageError::Damaged(_)) => "damaged".into(),
        Err(other) => format!("{other:?}"),
    };
    assert_eq!(answer, then, "{id}");
}

pub(crate) async fn check_store(blobs: &dyn Blobs) {
    check(blobs, HELLO, "missing").await;
    for _ in 0..2 {
        assert_eq!(blobs.put(b"hello".to_vec()).await.expect("kept").as_str(), HELLO);
        check(blobs, HELLO, "hello").await;
    }
    let several = ["one", "hello", "", "one"].map(|text| text.as_bytes().to_vec());
    let ids = blobs.put_all(several.clone().map(BlobBody::Bytes).into()).await.expect("kept");
    for (id, content) in ids.iter().zip(&several) {
        assert_eq!(&blobs.get(id).await.expect("kept"), content);
    }
    assert_eq!((ids.len(), ids[1].as_str(), &ids[0]), (4, HELLO, &ids[3]));
    assert!(blobs.put_all(Vec::new()).await.expect("nothing to store").is_empty());
    let empty = blobs.put(Vec::new()).await.expect("kept");
    check(blobs, empty.as_str(), "").await;
    let other_case = HELLO.to_uppercase();
    for bad in ["x", "tmp", &HELLO[1..], &other_case, &"g".repeat(64)] {
        check(blobs, bad, "missing").await;
    }
}

#[tokio::test]
async fn every_store_returns_what_was_put() {
    let dir = tempfile::tempdir().unwrap();
    check_store(&memory::MemoryStore::new()).await;
    check_store(&FileBlobs::open(dir.path()).unwrap()).await;
    let packs = tempfile::tempdir().unwrap();
    check_store(&PackBlobs::open(packs.path(), 1 << 20).unwrap()).await;
    check(&FileBlobs::open(dir.path()).unwrap(), HELLO, "hello").await;
}

#[tokio::test]
async fn a_file_of_any_length_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let (given, kept) = (dir.path().join("given"), dir.path().join("kept"));
    let blobs = FileBlobs::open(&kept).unwrap();
    for length in [0, 5, 3 << 20] {
        let content = vec![b'x'; length];
        for _ in 0..2 {
            fs::write(&given, &content).unwrap();
            let ids = blobs
                .put_all(vec![BlobBody::File(FileRange {
                    file: given.clone(),
                    offset: 0,
                    length: length as u64,
                })])
                .await
                .unwrap();
            assert_eq!(blobs.put(content.clone()).await.unwrap(), ids[0]);
            fs::remove_file(&given).unwrap();
            match blobs.body(&ids[0], 5).await.unwrap() {
                BlobBody::Bytes(bytes) => assert_eq!(bytes, content),
                BlobBody::Hash(_) => panic!("the blob is stored"),
                BlobBody::File(FileRange { file, .. }) => {
                    assert_eq!((fs::read(file).unwrap(), length), (content.clone(), 3 << 20))
                }
            }
        }
    }
    assert_eq!(fs::read_dir(kept.join("tmp")).unwrap().count(), 0);
    let long = blobs.put(vec![b'x'; 3 << 20]).await.unwrap();
    fs::write(kept.join(&long.as_str()[..2]).join(&long.as_str()[2..]), vec![b'y'; 3 << 20])
        .unwrap();
    assert!(matches!(blobs.body(&long, 5).await, Err(StorageError::Damaged(_))));
}

#[tokio::test]
async fn a_damaged_blob_is_reported_and_can_be_put_again() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = FileBlobs::open(dir.path()).unwrap();
    let id = blobs.put(b"hello".to_vec()).await.unwrap();
    fs::write(dir.path().join(&HELLO[..2]).join(&HELLO[2..]), "jello").unwrap();
    check(&blobs, id.as_str(), "damaged").await;
    blobs.put(b"hello".to_vec()).await.unwrap();
    check(&blobs, id.as_str(), "hello").await;
    assert_eq!(fs::read_dir(dir.path().join("tmp")).unwrap().count(), 0);
}
