//! Files that are handed to a session, and the names they get.

use std::sync::Arc;

use crate::command::{Say, Upload};
use crate::event::Event;
use crate::id::{Fresh as _, SessionId};
use crate::message::{Attachment, MediaKind, Message, Part};
use crate::session::Refusal;
use crate::session::decide::on_say;
use crate::session::state::State;
use crate::session::turn::Turn;
use crate::stamp::Stamp;

/// Takes a file; its name is made safe and unique.
pub(super) fn attach(state: &State, upload: Upload, stamp: &Stamp) -> Result<Vec<Event>, Refusal> {
    let taken = |name: &str| state.attachment(name).is_some();
    Ok(vec![Event::AttachmentAdded(named(upload, taken, stamp)?)])
}

/// Says something that files come with: all of it or nothing.
pub(super) fn say_with(
    state: &State,
    mut say: Say,
    files: Vec<(MediaKind, Upload)>,
    stamp: &Stamp,
) -> Result<Vec<Event>, Refusal> {
    if let Some(sent) = say.options.key.as_ref().and_then(|key| state.keyed(key)) {
        return sent_again(state, sent, &say.parts);
    }
    let mut kept: Vec<Attachment> = Vec::new();
    for (kind, upload) in files {
        let taken = |name: &str| {
            kept.iter().any(|file| file.name == name) || state.attachment(name).is_some()
        };
        let file = named(upload, taken, stamp)?;
        let (name, mime) = (file.name.clone(), Some(file.mime.clone()));
        say.parts.push(Part::Media { kind, name, mime });
        kept.push(file);
    }
    let said = on_say(state, say, &kept, stamp)?;
    Ok(kept.into_iter().map(Event::AttachmentAdded).chain(said).collect())
}

/// A message that is there already changes nothing. Its files went by names of their own.
fn sent_again(state: &State, sent: &Turn, parts: &[Part]) -> Result<Vec<Event>, Refusal> {
    let said = |part: &&Part| !matches!(part, Part::Media { .. });
    let same = |message: &Arc<Message>| {
        message.id == sent.message && message.parts.iter().filter(said).eq(parts)
    };
    match state.messages.iter().any(same) {
        true => Ok(Vec::new()),
        false => Err(Refusal::KeyReused(sent.id.clone())),
    }
}

fn named(
    upload: Upload,
    taken: impl Fn(&str) -> bool,
    stamp: &Stamp,
) -> Result<Attachment, Refusal> {
    let name = file_name(&upload.name).ok_or(Refusal::BadName)?;
    let name = if taken(&name) { fresh_name(&name, stamp) } else { name };
    let Upload { mime, blob, size, .. } = upload;
    Ok(Attachment { name, mime, blob, size })
}

/// The last segment of a path, if it can be a file's name; `.bin` where it has no extension.
fn file_name(path: &str) -> Option<String> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let bad = name.is_empty() || name.len() > 200 || name.chars().all(|c| c == '.');
    if bad || name.chars().any(char::is_control) || path.contains('\0') {
        return None;
    }
    let named =
        name.rsplit_once('.').is_some_and(|(stem, end)| !stem.is_empty() && !end.is_empty());
    Some(if named { name.into() } else { format!("{name}.bin") })
}

fn fresh_name(taken: &str, stamp: &Stamp) -> String {
    let extension = taken.rsplit_once('.').map_or("bin", |(_, end)| end);
    let id = stamp.id::<SessionId>();
    format!("att_{}.{extension}", &id.as_str()[SessionId::PREFIX.len()..])
}
