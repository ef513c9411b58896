//! Looks at the files of a workspace, and copies those that are not as they were.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ignored::{self, Ignored};
use super::index::{Entry, Index, key};
use super::pack::{Extent, Pack};
use super::unseen::Unseen;
use super::{Signature, Unrecorded};
use crate::beneath::{self, Place};
use crate::blocking::Flag;
use crate::walk::{Next, Walk};

/// The most files that are looked at.
pub(super) const MOST_FILES: usize = 50_000;
/// The most that is copied, in bytes.
pub(super) const MOST_BYTES: u64 = 1024 * 1024 * 1024;

/// A file or link, from the workspace on.
pub(super) type Found = (PathBuf, Signature);

/// Looks at a workspace; what is as it was the last time is not read again.
pub(super) fn scan(
    root: &Path,
    folder: &Path,
    old: Option<&Index>,
    flag: &Flag,
) -> Result<Index, Unrecorded> {
    let pack = match old {
        Some(old) => old.pack.clone(),
        None => Arc::new(Pack::new(folder)?),
    };
    let at = pack.now()?;
    let (found, unseen) = all(root, flag)?;
    let mut known = Known(old.map_or(&[], |old| &old.files));
    let mut files = Vec::with_capacity(found.len());
    for (path, signature) in found {
        if flag.is_down() {
            return Err(Unrecorded::Cancelled);
        }
        let settled = signature.is_settled(at);
        let old = known.find(&path);
        files.extend(match old {
            Some(old) if old.signature == signature && old.settled => Some(old.clone()),
            _ => copied(root, &pack, &path, old)?.map(|copy| {
                let path = old.map_or_else(|| path.into(), |old| old.path.clone());
                Entry { path, signature, copy, settled }
            }),
        });
    }
    Ok(Index { at, files, pack, unseen })
}

/// All files and links, sorted, but for folders that are not looked into.
fn all(root: &Path, flag: &Flag) -> Result<(Vec<Found>, Vec<Unseen>), Unrecorded> {
    let mut found = list(root, flag)?;
    let Ignored { files, unseen, .. } = ignored::list(root, &found, flag);
    if flag.is_down() {
        return Err(Unrecorded::Cancelled);
    }
    if !files.is_empty() {
        found.extend(files);
        found.sort_unstable_by(|(a, _), (b, _)| key(a).cmp(key(b)));
    }
    Ok((found, unseen))
}

/// The files and links that git would not ignore, sorted.
fn list(root: &Path, flag: &Flag) -> Result<Vec<Found>, Unrecorded> {
    let (mut found, mut bytes, mut trouble) = (Vec::new(), 0, None);
    let walk = Walk { workspace: root, within: None, skipped: &[], depth: None };
    let walked = walk.each(flag, |file| {
        let name = file.path.file_name().unwrap_or_default();
        if beneath::is_temporary(name) {
            return Ok(Next::Continue);
        }
        // What is gone by now was not there.
        let Ok(metadata) = root.join(&file.path).symlink_metadata() else {
            return Ok(Next::Continue);
        };
        if metadata.is_file() || metadata.is_symlink() {
            bytes += Some(metadata.len()).filter(|size| *size <= beneath::MOST_BYTES).unwrap_or(0);
            found.push((file.path, Signature::of(&metadata)));
        }
        trouble = match (found.len() > MOST_FILES, bytes > MOST_BYTES) {
            (true, _) => Some(Unrecorded::Many),
            (false, true) => Some(Unrecorded::Large),
            (false, false) => return Ok(Next::Continue),
        };
        Ok(Next::Stop)
    });
    walked.map_err(Unrecorded::Workspace)?;
    match trouble {
        Some(trouble) => Err(trouble),
        None if flag.is_down() => Err(Unrecorded::Cancelled),
        None => {
            found.sort_unstable_by(|(a, _), (b, _)| key(a).cmp(key(b)));
            Ok(found)
        }
    }
}

/// Where a file's copy is, which is made unless it is there; nothing if the file is gone.
///
/// Its signature was taken before, so if it changes now, the next look will show it.
fn copied(
    root: &Path,
    pack: &Pack,
    path: &Path,
    old: Option<&Entry>,
) -> io::Result<Option<Option<Extent>>> {
    let bytes = match Place::find(root, path).and_then(|place| place.look()) {
        Ok(content) => content.bytes,
        Err(beneath::Error::Large(..) | beneath::Error::Other { .. }) => return Ok(Some(None)),
        Err(_) => return Ok(None),
    };
    let same = old.and_then(|old| old.copy).filter(|copy| copy.length == bytes.len() as u64);
    match same {
        Some(copy) if pack.read(copy)? == bytes => Ok(Some(Some(copy))),
        _ => Ok(Some(Some(pack.add(&bytes)?))),
    }
}

/// Files that are asked for in their order.
struct Known<'a>(&'a [Entry]);

impl<'a> Known<'a> {
    fn find(&mut self, path: &Path) -> Option<&'a Entry> {
        while let [first, rest @ ..] = self.0 {
            match key(&first.path).cmp(key(path)) {
                std::cmp::Ordering::Less => self.0 = rest,
                std::cmp::Ordering::Equal => return Some(first),
                std::cmp::Ordering::Greater => return None,
            }
        }
        None
    }
}
