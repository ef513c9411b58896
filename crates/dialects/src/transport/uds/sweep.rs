//! Removes the sockets of daemons that were killed.
//!
//! A socket that is named after its process does not conflict with the next one, so nothing else would remove it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::process::getuid;

use super::place::stale;

/// Removes sockets in the same folder that are named after processes which no longer exist. Files that cannot be
/// checked are left alone.
pub(super) fn sweep(path: &Path) {
    let own = std::process::id().to_string();
    let names = path.file_name().and_then(|name| name.to_str()?.split_once(&own));
    let (Some((before, after)), Some(folder)) = (names, path.parent()) else { return };
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name
            .to_str()
            .and_then(|name| name.strip_prefix(before)?.strip_suffix(after))
            .filter(|process| process.bytes().all(|byte| byte.is_ascii_digit()));
        if process.is_some_and(|process| process != own && is_left(&entry.path(), process)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// True if a socket is this user's, its process is gone and no process answers on it.
fn is_left(path: &Path, process: &str) -> bool {
    let ours = fs::symlink_metadata(path).is_ok_and(|file| file.uid() == getuid().as_raw());
    ours && !Path::new("/proc").join(process).exists() && stale(path).is_ok()
}
