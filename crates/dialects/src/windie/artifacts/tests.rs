//! Which artifacts are kept and which are removed, with a fake clock.

use std::sync::atomic::{AtomicI64, Ordering};

use quintet_kernel::{Stamp, Time};
use quintet_stores::{FileUploads, memory};
use tempfile::TempDir;

use super::*;

/// The beginning of a picture.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";
const DAY: Duration = Duration::from_secs(86400);

struct FixedClock(AtomicI64);

impl Clock for FixedClock {
    fn stamp(&self) -> Stamp {
        Stamp::new(self.now(), [1, 2])
    }

    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }
}

struct Room {
    artifact_store: ArtifactStore,
    store: memory::MemoryStore,
    clock: Arc<FixedClock>,
    dir: TempDir,
}

impl Room {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (store, clock) = (memory::MemoryStore::new(), Arc::new(FixedClock(AtomicI64::new(1))));
        let artifact_store = ArtifactStore {
            artifacts: Arc::new(store.clone()),
            uploads: Arc::new(FileUploads::open(dir.path()).unwrap()),
            blobs: Arc::new(store.clone()),
            clock: clock.clone(),
        };
        Self { artifact_store, store, clock, dir }
    }

    async fn hand_in(&self, user: Option<&User>, content: &[u8]) -> Option<Artifact> {
        self.artifact_store.keep_bytes(user, content.to_vec()).await.unwrap()
    }

    fn later(&self, span: Duration) {
        let micros = i64::try_from(span.as_micros()).unwrap();
        self.clock.0.fetch_add(micros, Ordering::SeqCst);
    }

    fn files(&self) -> usize {
        let entries = std::fs::read_dir(self.dir.path()).unwrap().flatten();
        entries.filter(|entry| entry.path().is_file()).count()
    }
}

fn user(id: &str) -> User {
    User { id: id.into(), install: format!("install of {id}") }
}

#[tokio::test]
async fn what_begins_like_no_picture_is_what_the_client_says() {
    let room = Room::new();
    let store = &room.artifact_store;
    let hand_in = async |content: &[u8], claimed: Option<ImageFormat>| {
        let head = content.iter().copied().take(SIGNATURE_BYTES).collect();
        let sha256 = hex::encode(Sha256::digest(content));
        let taken = Taken { head, size: content.len() as u64, sha256, claimed };
        let mut writer = store.uploads.begin().await.unwrap();
        writer.write(content.to_vec()).await.unwrap();
        store.keep(None, taken, writer).await.unwrap()
    };
    let png = format_named("IMAGE/PNG");
    assert_eq!(hand_in(b"hello", None).await, None);
    assert_eq!(hand_in(b"", png).await, None);
    let hello = hand_in(b"hello", png).await.unwrap();
    assert!(hello.mime == "image/png" && hello.id.ends_with(".png"), "{hello:?}");
    let jpeg = hand_in(b"\xff\xd8\xff\xe0JFIF", png).await.unwrap();
    assert!(jpeg.mime == "image/jpeg" && jpeg.id.ends_with(".jpg"), "{jpeg:?}");
    let session = SessionId::parse("s").unwrap();
    for (artifact, is_picture) in [(hello, false), (jpeg, true)] {
        let adopted = store.adopt(None, &artifact.id, &session).await.unwrap().unwrap();
        assert_eq!((adopted.is_picture, adopted.artifact), (is_picture, artifact));
    }
}

#[tokio::test]
async fn the_bytes_tell_what_a_picture_is() {
    let room = Room::new();
    let png = room.hand_in(None, PNG).await.unwrap();
    assert_eq!((png.mime.as_str(), png.size), ("image/png", PNG.len() as u64));
    assert!(png.id.len() == 36 && png.id.ends_with(".png"), "{png:?}");
    let jpeg = room.hand_in(None, b"\xff\xd8\xff\xe0JFIF").await.unwrap();
    assert!(jpeg.mime == "image/jpeg" && jpeg.id.ends_with(".jpg"), "{jpeg:?}");
    for nothing in [&b""[..], b"\x89PNG", b"<svg/>", b"GIF89a..", b"\xff\xd8"] {
        assert_eq!(room.hand_in(None, nothing).await, None);
    }
    assert_eq!(room.files(), 2);
}

#[tokio::test]
async fn an_artifact_is_its_owners_alone() {
    let room = Room::new();
    let (me, you, session) = (user("me"), user("you"), SessionId::parse("s").unwrap());
    let mine = room.hand_in(Some(&me), PNG).await.unwrap();
    let nobodys = room.hand_in(None, PNG).await.unwrap();
    let find = async |user, id: &str| room.artifact_store.find(user, id).await.unwrap().is_some();
    assert!(find(Some(&me), &mine.id).await);
    assert!(!find(Some(&you), &mine.id).await);
    assert!(!find(Some(&you), &nobodys.id).await);
    assert!(find(None, &mine.id).await);
    assert!(!find(None, "x.png").await);
    assert_eq!(room.artifact_store.adopt(Some(&you), &mine.id, &session).await.unwrap(), None);
    let adopted = room.artifact_store.adopt(Some(&me), &mine.id, &session).await.unwrap();
    let Adopted { artifact, blob, is_picture } = adopted.unwrap();
    assert!(is_picture);
    assert_eq!((&artifact, blob.as_str()), (&mine, mine.sha256.as_str()));
    assert_eq!(room.store.get(&blob).await.unwrap(), PNG);
}

#[tokio::test]
async fn what_no_session_refers_to_goes_when_it_is_old() {
    let room = Room::new();
    let (session, old) = (SessionId::parse("s").unwrap(), room.hand_in(None, PNG).await.unwrap());
    let used = room.hand_in(None, PNG).await.unwrap();
    room.artifact_store.adopt(None, &used.id, &session).await.unwrap().unwrap();
    room.later(DAY + Duration::from_secs(1));
    let young = room.hand_in(None, PNG).await.unwrap();
    assert_eq!(room.artifact_store.tidy(None).await.unwrap(), 0);
    assert_eq!(room.artifact_store.tidy(Some(DAY * 2)).await.unwrap(), 0);
    assert_eq!(room.artifact_store.tidy(Some(DAY)).await.unwrap(), 1);
    assert_eq!(room.artifact_store.tidy(Some(DAY)).await.unwrap(), 0);
    let find = async |id: &str| room.artifact_store.find(None, id).await.unwrap().is_some();
    assert!(!find(&old.id).await && find(&used.id).await && find(&young.id).await);
    assert_eq!(room.files(), 2);
}

#[tokio::test]
async fn files_that_are_nobodys_go_and_damage_is_noticed() {
    let room = Room::new();
    let session = SessionId::parse("s").unwrap();
    let (one, two) =
        (room.hand_in(None, PNG).await.unwrap(), room.hand_in(None, PNG).await.unwrap());
    std::fs::write(room.dir.path().join("left-behind.png"), PNG).unwrap();
    room.artifact_store.tidy(None).await.unwrap();
    assert_eq!(room.files(), 2);
    std::fs::write(room.dir.path().join(&one.id), "something else").unwrap();
    let damaged = room.artifact_store.adopt(None, &one.id, &session).await;
    assert!(matches!(damaged, Err(StorageError::Damaged(_))), "{damaged:?}");
    std::fs::remove_file(room.dir.path().join(&two.id)).unwrap();
    assert_eq!(room.artifact_store.adopt(None, &two.id, &session).await.unwrap(), None);
}
