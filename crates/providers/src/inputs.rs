//! Fits the files of a prompt to the media that a model supports.

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Failure, FailureKind, Profile, Prompt, PromptMessage, PromptPart};

/// Replaces files that the model does not support by their names, because the model may have been
/// switched since, or a tool created the file. Fails if such a file belongs to the newest message.
pub(crate) fn fit(
    prompt: &mut Prompt,
    profile: &Profile,
    takes: impl Fn(MediaKind, &str) -> bool,
) -> Result<(), Failure> {
    let fits = |part: &PromptPart| match part {
        PromptPart::Text(_) => true,
        PromptPart::Media { kind, mime, .. } => {
            is_text(mime) || (profile.inputs.contains(kind) && takes(*kind, mime))
        }
    };
    let user = |message: &Arc<PromptMessage>| matches!(**message, PromptMessage::User(_));
    let newest = prompt.messages.iter().rposition(user);
    let fit = |message: &PromptMessage| match message {
        PromptMessage::User(parts) | PromptMessage::Result { media: parts, .. } => {
            parts.iter().all(fits)
        }
        PromptMessage::System(_) | PromptMessage::Assistant { .. } => true,
    };
    let odd = prompt.messages.iter_mut().enumerate().filter(|(_, message)| !fit(message));
    for (n, message) in odd {
        match Arc::make_mut(message) {
            PromptMessage::User(parts) => {
                let odd = parts.iter_mut().filter(|part| !fits(part));
                for part in odd {
                    if Some(n) == newest {
                        return Err(unsupported(part));
                    }
                    *part = PromptPart::Text(named(part));
                }
            }
            PromptMessage::Result { text, media, .. } => {
                for part in media.iter().filter(|part| !fits(part)) {
                    text.push('\n');
                    text.push_str(&named(part));
                }
                media.retain(fits);
            }
            PromptMessage::System(_) | PromptMessage::Assistant { .. } => {}
        }
    }
    Ok(())
}

/// True if a file of this type is sent as text.
pub(crate) fn is_text(mime: &str) -> bool {
    let mime = essence(mime);
    mime.starts_with("text/") || mime == "application/json"
}

/// A media type without its parameters.
pub(crate) fn essence(mime: &str) -> String {
    mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// True for the picture types that every family supports.
pub(crate) fn is_picture(mime: &str) -> bool {
    matches!(
        essence(mime).as_str(),
        "image/png" | "image/jpeg" | "image/jpg" | "image/gif" | "image/webp"
    )
}

fn named(part: &PromptPart) -> String {
    match part {
        PromptPart::Text(text) => text.clone(),
        PromptPart::Media { name, mime, .. } => {
            format!("(the file {name:?}, {mime}, cannot be shown to this model)")
        }
    }
}

fn unsupported(part: &PromptPart) -> Failure {
    let message = match part {
        PromptPart::Text(_) => String::new(),
        PromptPart::Media { kind, name, mime, .. } => {
            let kind = match kind {
                MediaKind::Image => "images",
                MediaKind::Audio => "audio",
                MediaKind::File => "files",
            };
            format!("the model takes no {kind} of this type ({name}, {mime})")
        }
    };
    Failure { kind: FailureKind::UnsupportedInput, message }
}
