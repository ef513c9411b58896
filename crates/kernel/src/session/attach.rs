//! Files attached to a session, and their names.

use crate::command::{NewAttachment, NewMessage};
use crate::event::Event;
use crate::id::{GeneratedId as _, SessionId};
use crate::message::{Attachment, Part};
use crate::session::Refusal;
use crate::session::state::State;
use crate::stamp::Stamp;

/// Adds a file; its name is made safe and unique.
pub(super) fn attach(
    state: &State,
    upload: NewAttachment,
    stamp: &Stamp,
) -> Result<Vec<Event>, Refusal> {
    let taken = |name: &str| state.attachment(name).is_some();
    Ok(vec![Event::AttachmentAdded(named_attachment(upload, taken, stamp)?)])
}

/// Adds the files of a message: the message refers to them by the names they get.
pub(super) fn attach_to(
    state: &State,
    say: &mut NewMessage,
    stamp: &Stamp,
) -> Result<Vec<Attachment>, Refusal> {
    let mut kept: Vec<Attachment> = Vec::new();
    for (kind, upload) in std::mem::take(&mut say.files) {
        let taken = |name: &str| {
            kept.iter().any(|file| file.name == name) || state.attachment(name).is_some()
        };
        let file = named_attachment(upload, taken, stamp)?;
        let (name, mime) = (file.name.clone(), Some(file.mime.clone()));
        say.parts.push(Part::Media { kind, name, mime });
        kept.push(file);
    }
    Ok(kept)
}

fn named_attachment(
    upload: NewAttachment,
    taken: impl Fn(&str) -> bool,
    stamp: &Stamp,
) -> Result<Attachment, Refusal> {
    let name = file_name(&upload.name).ok_or(Refusal::BadName)?;
    let name = if taken(&name) { fresh_name(&name, stamp) } else { name };
    let NewAttachment { mime, blob, size, .. } = upload;
    Ok(Attachment { name, mime, blob, size })
}

/// The last segment of a path, if it is a valid file name; `.bin` is added if it has no extension.
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
