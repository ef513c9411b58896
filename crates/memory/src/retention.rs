//! Archives or deletes daily notes after a number of days.

use std::time::Duration;

use quintet_kernel::Time;
use quintet_kernel::memory::MemoryError;
use rustix::fs::{AtFlags, Dir, Mode, RenameFlags, mkdirat, renameat_with, unlinkat};
use rustix::io::Errno;

use crate::confined_fs::{LockedFolder, Root, open_error};
use crate::paths::{self, ARCHIVE, FOLDER};

/// What happens to expired daily notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExpiry {
    /// Moved to `memory/archive`, where they are neither searched nor shown to models.
    Archive,
    /// Deleted.
    Remove,
}

const DAY_SECONDS: u64 = 24 * 60 * 60;

/// Archives or deletes daily notes that are older than `days`.
pub(crate) fn sweep(
    root: &Root,
    days: u64,
    expired: OnExpiry,
    now: Time,
) -> Result<(), MemoryError> {
    let oldest = now.before(Duration::from_secs(days.saturating_mul(DAY_SECONDS))).day();
    let Some(folder) = root.folder(FOLDER)? else { return Ok(()) };
    let old = |name: &String| paths::day_of(name).is_some_and(|day| *day < *oldest);
    let names: Vec<String> = names(&folder)?.into_iter().filter(old).collect();
    if names.is_empty() {
        return Ok(());
    }
    let folder = root.locked(FOLDER)?;
    names.iter().try_for_each(|name| match expired {
        OnExpiry::Remove => remove(&folder, name),
        OnExpiry::Archive => archive(root, &folder, name),
    })
}

/// The notes in a folder.
pub(crate) fn names(folder: &std::os::fd::OwnedFd) -> Result<Vec<String>, MemoryError> {
    let storage_error = |errno| open_error(errno, FOLDER);
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(storage_error)? {
        if let Ok(name) = entry.map_err(storage_error)?.file_name().to_str()
            && paths::is_note(name)
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn remove(folder: &LockedFolder, name: &str) -> Result<(), MemoryError> {
    tracing::info!(name, "deleted expired daily notes");
    match unlinkat(&folder.0, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(open_error(errno, name)),
    }
}

fn archive(root: &Root, folder: &LockedFolder, name: &str) -> Result<(), MemoryError> {
    match mkdirat(&folder.0, "archive", Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(open_error(errno, ARCHIVE)),
    }
    let Some(archive) = root.folder(ARCHIVE)? else { return Ok(()) };
    match renameat_with(&folder.0, name, &archive, name, RenameFlags::NOREPLACE) {
        Ok(()) => tracing::info!(name, "archived expired daily notes"),
        Err(Errno::NOENT) => {}
        // Existing files are never overwritten; people can resolve the conflict.
        Err(Errno::EXIST) => tracing::warn!(
            name,
            "could not archive expired daily notes: the archive has a file of that name"
        ),
        Err(errno) => return Err(open_error(errno, name)),
    }
    Ok(())
}
