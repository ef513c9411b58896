//! Pictures: from a client's upload to the session and the prompt.

use quintet_kernel::SessionId;
use quintet_kernel::command::NewAttachment;
use quintet_kernel::message::{CallArtifact, MediaKind, Part};
use quintet_kernel::port::{Artifact, StorageError};
use quintet_kernel::tool::Outcome;

use crate::windie::artifacts::{Adopted, decode_base64};
use crate::windie::conversation::ClientIdentity;
use crate::windie::serve::AppState;
use crate::windie::wire::tool_results::Picture;

impl AppState {
    /// Artifacts as files of a message. One that is missing, another user's or no picture is left out.
    pub(super) async fn pictures(
        &self,
        identity: &ClientIdentity,
        session: &SessionId,
        pictures: &[String],
    ) -> Result<Vec<(MediaKind, NewAttachment)>, StorageError> {
        let mut files = Vec::with_capacity(pictures.len());
        for id in pictures {
            let adopted = self.artifact_store.adopt(identity.user.as_ref(), id, session).await?;
            let Some(Adopted { artifact, blob, .. }) = adopted.filter(|adopted| adopted.is_picture)
            else {
                tracing::warn!(artifact = id, "a picture is missing and left out");
                continue;
            };
            let Artifact { id: name, mime, size, .. } = artifact;
            files.push((MediaKind::Image, NewAttachment { name, mime, blob, size }));
        }
        Ok(files)
    }

    /// Adds a picture to the result of a call. One in the message itself becomes an artifact, so that
    /// clients can fetch it. Models are not shown a file that is no picture.
    pub(super) async fn add_picture(
        &self,
        identity: &ClientIdentity,
        session: &SessionId,
        outcome: &mut Outcome,
        picture: Picture,
    ) -> Result<(), StorageError> {
        let (store, user) = (&self.artifact_store, identity.user.as_ref());
        let id = match picture {
            Picture::Artifact(id) => Some(id),
            Picture::Inline(text) => match decode_base64(&text) {
                Some(bytes) => store.keep_bytes(user, bytes).await?.map(|artifact| artifact.id),
                None => None,
            },
        };
        let Some(id) = id else { return Ok(()) };
        let Some(adopted) = store.adopt(user, &id, session).await? else { return Ok(()) };
        let Artifact { id: name, mime, size, .. } = adopted.artifact;
        if adopted.is_picture {
            let part = Part::Media { kind: MediaKind::Image, name: name.clone(), mime: None };
            outcome.parts.push(part);
        }
        outcome.artifacts.push(CallArtifact { name, mime, blob: adopted.blob, size });
        Ok(())
    }
}
