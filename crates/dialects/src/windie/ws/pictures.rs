//! Pictures: from a client's upload to the session and the prompt.

use quintet_kernel::command::NewAttachment;
use quintet_kernel::message::{CallArtifact, MediaKind, Part};
use quintet_kernel::port::{Artifact, Error};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{SessionId, State};

use super::Trouble;
use crate::windie::artifacts::{Adopted, decode_base64};
use crate::windie::conversation::ClientIdentity;
use crate::windie::serve::AppState;
use crate::windie::wire::tool_results::Picture;

impl AppState {
    /// Artifacts as files that come with a message. One that is gone, somebody else's or no picture is
    /// passed over.
    pub(super) async fn pictures(
        &self,
        identity: &ClientIdentity,
        session: &SessionId,
        pictures: &[String],
    ) -> Result<Vec<(MediaKind, NewAttachment)>, Error> {
        let mut files = Vec::with_capacity(pictures.len());
        for id in pictures {
            let adopted = self.artifact_store.adopt(identity.user.as_ref(), id, session).await?;
            let Some(Adopted { artifact, blob, .. }) = adopted.filter(|adopted| adopted.is_picture)
            else {
                tracing::warn!(artifact = id, "a picture is not there, and is left out");
                continue;
            };
            let Artifact { id: name, mime, size, .. } = artifact;
            files.push((MediaKind::Image, NewAttachment { name, mime, blob, size }));
        }
        Ok(files)
    }

    /// Adds a picture to what came of a call. A model that takes no pictures is told of it instead; of
    /// what is none only clients are told.
    pub(super) async fn illustrate(
        &self,
        identity: &ClientIdentity,
        state: &State,
        outcome: &mut Outcome,
        picture: Picture,
    ) -> Result<(), Trouble> {
        let picture = self.picture(identity, &state.id, picture).await?;
        let Some(Adopted { artifact, blob, is_picture }) = picture else { return Ok(()) };
        let Artifact { id: name, mime, size, .. } = artifact;
        if is_picture {
            let (kind, name, mime) = (MediaKind::Image, name.clone(), None);
            outcome.parts.push(Part::Media { kind, name, mime });
        }
        outcome.artifacts.push(CallArtifact { name, mime, blob, size });
        Ok(())
    }

    /// The picture as an artifact that the session refers to; nothing if it is gone. One that came in the
    /// message itself becomes an artifact, too, so that clients can fetch it.
    async fn picture(
        &self,
        identity: &ClientIdentity,
        session: &SessionId,
        picture: Picture,
    ) -> Result<Option<Adopted>, Trouble> {
        let user = identity.user.as_ref();
        let id = match picture {
            Picture::Artifact(id) => id,
            Picture::Inline(text) => {
                let Some(bytes) = decode_base64(&text) else { return Ok(None) };
                match self.artifact_store.keep_bytes(user, bytes).await? {
                    Some(artifact) => artifact.id,
                    None => return Ok(None),
                }
            }
        };
        Ok(self.artifact_store.adopt(user, &id, session).await?)
    }
}
