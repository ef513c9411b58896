//! Pictures of a session, and a tool that reads their text for models without image input.

use crate::message::{Attachment, CallArtifact, MediaKind, Message, Part};
use crate::model::{ModelRef, Profile};
use crate::session::State;

/// The tool that reads the text in pictures.
pub const LOOK_TOOL: &str = "look";
/// Number of pictures that a call of the tool can choose from; older ones are not available.
const PICTURES_LIMIT: usize = 100;

/// The pictures of a session, newest first.
pub fn session_pictures(state: &State) -> Vec<CallArtifact> {
    let messages = state.messages.iter().rev();
    messages.flat_map(|message| of_message(state, message)).take(PICTURES_LIMIT).collect()
}

/// The newest picture of a session.
pub fn newest_picture(state: &State) -> Option<CallArtifact> {
    state.messages.iter().rev().find_map(|message| of_message(state, message).next())
}

fn of_message<'a>(
    state: &'a State,
    message: &'a Message,
) -> impl Iterator<Item = CallArtifact> + use<'a> {
    message.parts.iter().rev().filter_map(|part| match part {
        Part::Media { kind: MediaKind::Image, name, .. } => {
            let left = message.files.iter().find(|file| file.name == *name).cloned();
            left.or_else(|| state.attachment(name).map(as_artifact))
        }
        Part::Media { .. }
        | Part::Text(_)
        | Part::Context(_)
        | Part::Thought(_)
        | Part::Call { .. } => None,
    })
}

fn as_artifact(file: &Attachment) -> CallArtifact {
    let Attachment { name, mime, blob, size } = file.clone();
    CallArtifact { name, mime, blob, size }
}

/// True if a model that does not take pictures can have their text read by the tool.
pub(crate) fn can_read_pictures(state: &State, model: &ModelRef) -> bool {
    let calls = state.profile(model).is_some_and(|profile| profile.tools);
    calls && state.tool(LOOK_TOOL).is_some()
}

/// The text that replaces a file which the model does not support; `None` if it does.
pub(crate) fn placeholder_text(
    state: &State,
    model: &ModelRef,
    (kind, name, mime): (MediaKind, &str, &str),
) -> Option<String> {
    let profile = state.profile(model)?;
    if accepts(profile, kind, mime) {
        return None;
    }
    let what = kind.name();
    match kind {
        MediaKind::Image if can_read_pictures(state, model) => Some(format!(
            "[{what} {name}: this model takes no pictures; the tool `{LOOK_TOOL}` reads the text in it]"
        )),
        MediaKind::Image | MediaKind::Audio | MediaKind::File => {
            Some(format!("[{what} {name} left out: this model does not take {what} parts]"))
        }
    }
}

/// True if a model supports a file. Text files are sent to every model as text.
pub(crate) fn accepts(profile: &Profile, kind: MediaKind, mime: &str) -> bool {
    let mime = mime.split(';').next().unwrap_or_default().trim();
    mime.starts_with("text/") || mime == "application/json" || profile.inputs.contains(&kind)
}
