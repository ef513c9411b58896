//! Tests that packs store blobs across processes and within their limit.

use super::*;

#[tokio::test]
async fn stored_blobs_are_found_by_the_next_process() {
    let dir = tempfile::tempdir().unwrap();
    let blobs = PackBlobs::open(dir.path(), 1 << 20).unwrap();
    let id = blobs.put(b"hello".to_vec()).await.unwrap();
    let blobs = PackBlobs::open(dir.path(), 1 << 20).unwrap();
    assert_eq!(blobs.get(&id).await.unwrap(), b"hello");
    assert_eq!(blobs.put(b"hello".to_vec()).await.unwrap(), id);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn a_part_of_a_file_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("given");
    fs::write(&file, "..hello..").unwrap();
    let blobs = PackBlobs::open(&dir.path().join("undo"), 1 << 20).unwrap();
    let extent = FileRange { file, offset: 2, length: 5 };
    let ids = blobs
        .put_all(vec![BlobBody::File(extent), BlobBody::Bytes(b"hello".to_vec())])
        .await
        .unwrap();
    assert_eq!(ids[0], ids[1]);
    let BlobBody::File(kept) = blobs.body(&ids[0], 4).await.unwrap() else {
        panic!("the blob is too long for memory")
    };
    let mut text = String::new();
    open_range(&kept).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello");
}

#[tokio::test]
async fn the_oldest_pack_is_deleted_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut ids = Vec::new();
    for n in 0..4_u8 {
        let blobs = PackBlobs::open(dir.path(), 1000).unwrap();
        ids.push(blobs.put(vec![n; 400]).await.unwrap());
    }
    let blobs = PackBlobs::open(dir.path(), 1000).unwrap();
    let mut kept = Vec::new();
    for id in &ids {
        kept.push(blobs.get(id).await.is_ok());
    }
    assert_eq!(kept, [false, false, true, true]);
}

#[tokio::test]
async fn an_incomplete_blob_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let id = PackBlobs::open(dir.path(), 1000).unwrap().put(b"hello".to_vec()).await.unwrap();
    fs::write(dir.path().join("00000000.pack"), "hell").unwrap();
    let blobs = PackBlobs::open(dir.path(), 1000).unwrap();
    assert!(matches!(blobs.get(&id).await, Err(StorageError::Missing(_))));
}
