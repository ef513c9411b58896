//! Daily notes are kept for some days. Then they are put away, or taken away if people say so.

use std::time::Duration;

use quintet_kernel::Time;
use quintet_kernel::memory::Error;
use rustix::fs::{AtFlags, Dir, Mode, RenameFlags, mkdirat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::beneath::{Locked, Root, explain};
use crate::name::{self, ARCHIVE, FOLDER};

/// What becomes of daily notes that are no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// Moved to `memory/archive`, where they are neither searched nor shown to models.
    Archive,
    /// Deleted.
    Remove,
}

const DAY: u64 = 24 * 60 * 60;

/// Puts away what is older than so many days.
pub(crate) fn sweep(root: &Root, days: u64, expired: Expired, now: Time) -> Result<(), Error> {
    let oldest = now.before(Duration::from_secs(days.saturating_mul(DAY))).day();
    let Some(folder) = root.folder(FOLDER)? else { return Ok(()) };
    let old = |name: &String| name::day(name).is_some_and(|day| *day < *oldest);
    let names: Vec<String> = names(&folder)?.into_iter().filter(old).collect();
    if names.is_empty() {
        return Ok(());
    }
    let folder = root.locked(FOLDER)?;
    names.iter().try_for_each(|name| match expired {
        Expired::Remove => remove(&folder, name),
        Expired::Archive => archive(root, &folder, name),
    })
}

/// The notes in a folder.
pub(crate) fn names(folder: &std::os::fd::OwnedFd) -> Result<Vec<String>, Error> {
    let storage = |errno| explain(errno, FOLDER);
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(storage)? {
        if let Ok(name) = entry.map_err(storage)?.file_name().to_str()
            && name::is_note(name)
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn remove(folder: &Locked, name: &str) -> Result<(), Error> {
    tracing::info!(name, "daily notes are no longer kept and were deleted");
    match unlinkat(&folder.0, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(explain(errno, name)),
    }
}

fn archive(root: &Root, folder: &Locked, name: &str) -> Result<(), Error> {
    match mkdirat(&folder.0, "archive", Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(explain(errno, ARCHIVE)),
    }
    let Some(archive) = root.folder(ARCHIVE)? else { return Ok(()) };
    match renameat_with(&folder.0, name, &archive, name, RenameFlags::NOREPLACE) {
        Ok(()) => tracing::info!(name, "daily notes were moved to the archive"),
        Err(Errno::NOENT) => {}
        // Nothing is ever overwritten; people may sort it out.
        Err(Errno::EXIST) => tracing::warn!(name, "the archive has notes of that day already"),
        Err(errno) => return Err(explain(errno, name)),
    }
    Ok(())
}
