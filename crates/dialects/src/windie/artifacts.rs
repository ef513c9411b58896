//! Artifacts: pictures that clients upload, their owners, and how long they are kept.
//!
//! An artifact is listed before its file gets its name, and unlisted before the file is deleted. A file that is
//! not listed therefore never belongs to anyone.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::id::{BlobId, SessionId};
use quintet_kernel::port::{
    Artifact, Artifacts, Blobs, Clock, StorageError, UploadWriter, Uploads,
};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::auth::{User, uuid};
use crate::dialect::Services;

/// How much of an artifact is read at once.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;
/// How often it is looked for what can go, at least and at most.
const MIN_CLEANUP_INTERVAL: Duration = Duration::from_secs(1);
const MAX_CLEANUP_INTERVAL: Duration = Duration::from_secs(3600);

/// A kind of picture.
#[derive(Debug)]
pub(super) struct Kind {
    begins: &'static [u8],
    mime: &'static str,
    ending: &'static str,
}

static KINDS: [Kind; 2] = [
    Kind { begins: b"\x89PNG\r\n\x1a\n", mime: "image/png", ending: "png" },
    Kind { begins: b"\xff\xd8\xff", mime: "image/jpeg", ending: "jpg" },
];

impl Kind {
    /// The kind that a client names.
    pub(super) fn named(mime: &str) -> Option<&'static Self> {
        let mime = if mime.eq_ignore_ascii_case("image/jpg") { "image/jpeg" } else { mime };
        KINDS.iter().find(|kind| kind.mime.eq_ignore_ascii_case(mime))
    }

    /// The kind that content begins like.
    fn of(content: &[u8]) -> Option<&'static Self> {
        KINDS.iter().find(|kind| content.starts_with(kind.begins))
    }
}

/// Whether a name is one that artifacts are given here.
pub(super) fn is_own(name: &str) -> bool {
    let Some((stem, ending)) = name.split_once('.') else { return false };
    let known = KINDS.iter().any(|kind| kind.ending == ending);
    known && stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The bytes of a text in base64, perhaps a data URL, with any whitespace in it.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim();
    let data = match text.strip_prefix("data:") {
        Some(url) => url.split_once(',')?.1,
        None => text,
    };
    let data: Vec<u8> = data.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(data).ok().filter(|bytes| !bytes.is_empty())
}

/// Number of bytes by which the type of a file is recognised.
pub(super) const SIGNATURE_BYTES: usize = 8;

/// What was handed in, as far as it is known before it has a name.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) head: Vec<u8>,
    pub(super) size: u64,
    pub(super) sha256: String,
    /// What the client says it is.
    pub(super) claimed: Option<&'static Kind>,
}

/// An artifact that a session refers to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Adopted {
    pub(super) artifact: Artifact,
    pub(super) blob: BlobId,
    /// True if models can be shown it.
    pub(super) is_picture: bool,
}

/// Where artifacts are.
#[derive(Clone)]
pub(super) struct ArtifactStore {
    artifacts: Arc<dyn Artifacts>,
    pub(super) uploads: Arc<dyn Uploads>,
    blobs: Arc<dyn Blobs>,
    clock: Arc<dyn Clock>,
}

impl ArtifactStore {
    pub(super) fn new(ports: &Services) -> Self {
        Self {
            artifacts: Arc::clone(&ports.artifacts),
            uploads: Arc::clone(&ports.uploads),
            blobs: Arc::clone(&ports.blobs),
            clock: Arc::clone(&ports.clock),
        }
    }

    /// Artifacts of a store in memory.
    #[cfg(test)]
    pub(super) fn for_test(
        store: quintet_stores::memory::MemoryStore,
        uploads: Arc<dyn Uploads>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let (artifacts, blobs) = (Arc::new(store.clone()), Arc::new(store));
        Self { artifacts, uploads, blobs, clock }
    }

    /// Keeps what was handed in, durably. Its kind is what it begins like, or else what it was said to be;
    /// nothing is kept of what is of neither.
    pub(super) async fn keep(
        &self,
        user: Option<&User>,
        taken: Taken,
        content: Box<dyn UploadWriter>,
    ) -> Result<Option<Artifact>, StorageError> {
        let claimed = taken.claimed.filter(|_| taken.size > 0);
        let Some(kind) = Kind::of(&taken.head).or(claimed) else { return Ok(None) };
        let artifact = Artifact {
            id: format!("{}.{}", uuid(), kind.ending),
            owner: user.map(|user| user.id.clone()),
            mime: kind.mime.into(),
            size: taken.size,
            sha256: taken.sha256,
            created: self.clock.now(),
        };
        self.artifacts.add(artifact.clone()).await?;
        if let Err(error) = content.commit(&artifact.id).await {
            self.artifacts.discard(&artifact.id).await?;
            return Err(error);
        }
        Ok(Some(artifact))
    }

    /// Keeps content that is at hand; nothing if it is no picture.
    pub(super) async fn keep_bytes(
        &self,
        user: Option<&User>,
        bytes: Vec<u8>,
    ) -> Result<Option<Artifact>, StorageError> {
        let taken = Taken {
            head: bytes.iter().copied().take(SIGNATURE_BYTES).collect(),
            size: bytes.len() as u64,
            sha256: hex::encode(Sha256::digest(&bytes)),
            claimed: None,
        };
        let mut content = self.uploads.begin().await?;
        content.write(bytes).await?;
        self.keep(user, taken, content).await
    }

    /// An artifact, if it exists and the client may see it: the user's own, or any without install tokens.
    pub(super) async fn find(
        &self,
        user: Option<&User>,
        id: &str,
    ) -> Result<Option<Artifact>, StorageError> {
        let found = self.artifacts.artifact(id).await?;
        let his =
            |artifact: &Artifact| user.is_none_or(|user| artifact.owner.as_ref() == Some(&user.id));
        Ok(found.filter(his))
    }

    /// Has a session refer to an artifact, so that it stays, and puts its content where models are shown
    /// it from; nothing if somebody may not see it, or it is gone.
    pub(super) async fn adopt(
        &self,
        user: Option<&User>,
        id: &str,
        session: &SessionId,
    ) -> Result<Option<Adopted>, StorageError> {
        let Some(artifact) = self.find(user, id).await? else { return Ok(None) };
        if !self.artifacts.claim(id, session).await? {
            return Ok(None);
        }
        let length = usize::try_from(artifact.size).unwrap_or(usize::MAX);
        let content = match self.uploads.part(id, 0, length).await {
            Err(StorageError::Missing(_)) => return Ok(None),
            read => read?,
        };
        let is_picture = Kind::of(&content).is_some();
        let blob = self.blobs.put(content).await?;
        // Blobs are named by their SHA-256, so this is the same as was handed in, or it is not.
        if blob.as_str() != artifact.sha256 {
            return Err(StorageError::Damaged(format!("artifact {id}")));
        }
        Ok(Some(Adopted { artifact, blob, is_picture }))
    }

    /// Deletes old artifacts that no session refers to, and files without an artifact.
    async fn tidy(&self, keep: Option<Duration>) -> Result<usize, StorageError> {
        let mut removed = 0;
        if let Some(keep) = keep {
            for artifact in self.artifacts.unclaimed(self.clock.now().before(keep)).await? {
                if self.artifacts.discard(&artifact.id).await? {
                    self.uploads.remove(&artifact.id).await?;
                    removed += 1;
                }
            }
        }
        for name in self.uploads.names().await? {
            if self.artifacts.artifact(&name).await?.is_none() {
                self.uploads.remove(&name).await?;
            }
        }
        Ok(removed)
    }

    /// Deletes artifacts that are not needed any more, from time to time, until the daemon shuts down.
    pub(super) async fn sweep(self, keep: Option<Duration>, closing: CancellationToken) {
        let pause = keep.map_or(MAX_CLEANUP_INTERVAL, |keep| {
            keep.clamp(MIN_CLEANUP_INTERVAL, MAX_CLEANUP_INTERVAL)
        });
        loop {
            match self.tidy(keep).await {
                Ok(0) => {}
                Ok(artifacts) => tracing::info!(artifacts, "took away what no session refers to"),
                Err(error) => tracing::warn!(%error, "artifacts could not be looked through"),
            }
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
