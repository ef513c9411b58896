//! The scratch directories of commands, which become `/tmp` in namespaces.
//!
//! The supervisor of a command locks its scratch directory and removes it at the end. An
//! unlocked one belongs to a supervisor that was killed, and is removed when a daemon starts.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::process::getuid;
use tempfile::TempDir;

const PREFIX: &str = "quintet-scratch-";

/// How old an unlocked directory must be: the supervisor of a younger one may not have locked it yet.
const ABANDONED_AGE: Duration = Duration::from_secs(600);

/// Makes a scratch directory.
pub(super) fn create() -> io::Result<TempDir> {
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir()
}

/// Marks a scratch directory as in use for as long as the result is held; nothing if it cannot be.
pub(crate) fn lock(scratch: &Path) -> Option<File> {
    let directory = File::open(scratch).ok()?;
    flock(&directory, FlockOperation::NonBlockingLockExclusive).ok()?;
    Some(directory)
}

/// Removes the scratch directories of supervisors that were killed.
pub(super) fn remove_abandoned() {
    let directories = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    let ours = directories
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()));
    for entry in ours {
        let Ok(found) = entry.path().symlink_metadata() else { continue };
        let age = found.modified().ok().and_then(|it| it.elapsed().ok()).unwrap_or_default();
        let is_own = found.is_dir() && found.uid() == getuid().as_raw();
        if is_own && age >= ABANDONED_AGE && lock(&entry.path()).is_some() {
            // What cannot be removed is left to the system's cleanup of temporary files.
            let _rest = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::FileTimes;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn only_abandoned_directories_are_removed() {
        let old = |path: &Path| {
            let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
            File::open(path).unwrap().set_times(times).unwrap();
        };
        let [young, locked, abandoned] = [(); 3].map(|()| create().unwrap());
        let _lock = lock(locked.path()).unwrap();
        old(locked.path());
        old(abandoned.path());
        remove_abandoned();
        let left = [&young, &locked, &abandoned].map(|it| it.path().exists());
        assert_eq!(left, [true, true, false]);
    }
}
