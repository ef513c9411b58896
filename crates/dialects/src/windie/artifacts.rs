//! Artifacts: pictures that clients upload, their owners, and how long they are kept.
//!
//! An artifact is listed before its file gets its name, and unlisted before the file is deleted. A file that is
//! not listed therefore never belongs to anyone.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use quintet_kernel::id::{BlobId, SessionId};
use quintet_kernel::port::{
    Artifact, Artifacts, Blobs, Clock, StorageError, UploadWriter, Uploads,
};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

use super::auth::{User, uuid};
use crate::dialect::Services;

/// Bytes of an artifact that are read at once.
pub(super) const CHUNK_BYTES: usize = 256 * 1024;
/// The interval between deletions of old artifacts, which depends on how long they are kept.
const MIN_CLEANUP_INTERVAL: Duration = Duration::from_secs(1);
const MAX_CLEANUP_INTERVAL: Duration = Duration::from_secs(3600);

/// The format that a client names, if it is accepted.
pub(super) fn format_named(mime: &str) -> Option<ImageFormat> {
    match mime.to_ascii_lowercase().as_str() {
        "image/png" => Some(ImageFormat::Png),
        "image/jpeg" | "image/jpg" => Some(ImageFormat::Jpeg),
        _ => None,
    }
}

/// The format of a content, by its first bytes.
fn format_of(content: &[u8]) -> Option<ImageFormat> {
    let format = image::guess_format(content).ok()?;
    matches!(format, ImageFormat::Png | ImageFormat::Jpeg).then_some(format)
}

/// True if a name has the form of an artifact id of this daemon.
pub(super) fn is_own(name: &str) -> bool {
    let Some((stem, ending)) = name.split_once('.') else { return false };
    let is_hex = stem.len() == 32 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex && matches!(ending, "png" | "jpg")
}

/// The bytes of a text in base64, perhaps a data URL, without its whitespace.
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

/// An upload before it has an id.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) head: Vec<u8>,
    pub(super) size: u64,
    pub(super) sha256: String,
    /// The format that the client claims.
    pub(super) claimed: Option<ImageFormat>,
}

/// An artifact that a session refers to, with its content as a blob.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Adopted {
    pub(super) artifact: Artifact,
    pub(super) blob: BlobId,
    /// True if models can be shown it.
    pub(super) is_picture: bool,
}

/// The artifacts and their content.
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

    /// Stores an upload durably. Its first bytes decide its format, or else the client's claim; `None` if
    /// neither is an accepted format.
    pub(super) async fn keep(
        &self,
        user: Option<&User>,
        taken: Taken,
        content: Box<dyn UploadWriter>,
    ) -> Result<Option<Artifact>, StorageError> {
        let claimed = taken.claimed.filter(|_| taken.size > 0);
        let Some(format) = format_of(&taken.head).or(claimed) else { return Ok(None) };
        let ending = if format == ImageFormat::Png { "png" } else { "jpg" };
        let artifact = Artifact {
            id: format!("{}.{ending}", uuid()),
            owner: user.map(|user| user.id.clone()),
            mime: format.to_mime_type().into(),
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

    /// Stores content from memory; `None` if it is no picture.
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
        let may_see =
            |artifact: &Artifact| user.is_none_or(|user| artifact.owner.as_ref() == Some(&user.id));
        Ok(found.filter(may_see))
    }

    /// Makes a session refer to an artifact, so that it is kept, and stores its content as a blob for models;
    /// `None` if the user may not see it, or it was deleted.
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
        let is_picture = format_of(&content).is_some();
        let blob = self.blobs.put(content).await?;
        // Blobs are named by their SHA-256, which shows whether the content is the one that was uploaded.
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

    /// Deletes old artifacts at an interval until the daemon shuts down.
    pub(super) async fn sweep(self, keep: Option<Duration>, closing: CancellationToken) {
        let pause = keep.map_or(MAX_CLEANUP_INTERVAL, |keep| {
            keep.clamp(MIN_CLEANUP_INTERVAL, MAX_CLEANUP_INTERVAL)
        });
        loop {
            match self.tidy(keep).await {
                Ok(0) => {}
                Ok(artifacts) => {
                    tracing::info!(artifacts, "deleted artifacts that no session refers to")
                }
                Err(error) => tracing::warn!(%error, "artifacts could not be cleaned up"),
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
