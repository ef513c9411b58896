//! Which attachments a model can be given.

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Failure, FailureKind, Profile, Prompt, PromptMessage, PromptPart};

/// Says no to a prompt with media that the model does not take.
pub(crate) fn check(prompt: &Prompt, profile: &Profile) -> Result<(), Failure> {
    prompt.messages.iter().flat_map(parts).try_for_each(|part| match part {
        PromptPart::Text(_) => Ok(()),
        PromptPart::Media { mime, .. } if is_text(mime) => Ok(()),
        PromptPart::Media { kind, .. } if profile.inputs.contains(kind) => Ok(()),
        PromptPart::Media { kind, name, .. } => {
            Err(unsupported(format!("the model takes no {} ({name})", plural(*kind))))
        }
    })
}

/// Whether a file of this type reaches every model, as text.
pub(crate) fn is_text(mime: &str) -> bool {
    let mime = essence(mime);
    mime.starts_with("text/") || mime == "application/json"
}

/// A type without its parameters.
pub(crate) fn essence(mime: &str) -> String {
    mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(crate) fn unsupported(message: String) -> Failure {
    Failure { kind: FailureKind::UnsupportedInput, message }
}

fn parts(message: &PromptMessage) -> &[PromptPart] {
    match message {
        PromptMessage::User(parts) => parts,
        PromptMessage::Assistant { .. } | PromptMessage::Result { .. } => &[],
    }
}

fn plural(kind: MediaKind) -> &'static str {
    match kind {
        MediaKind::Image => "images",
        MediaKind::Audio => "audio",
        MediaKind::File => "files",
    }
}
