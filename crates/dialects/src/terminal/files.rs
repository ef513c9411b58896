//! Saved sessions on disk: only in the allowed folders, without following links.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, fsync, openat2, renameat, unlinkat};

/// The largest file that is read.
const FILE_BYTES_LIMIT: u64 = 64 * 1024 * 1024;

/// The folders that sessions may be saved in.
#[derive(Clone, Debug)]
pub(super) struct Folders {
    roots: Vec<PathBuf>,
}

impl Folders {
    /// Allows these folders and their subfolders.
    pub(super) fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots }
    }

    /// Writes a file atomically; returns its size. Fails if the path is not allowed or cannot be written.
    pub(super) fn write(&self, path: &Path, content: &[u8]) -> io::Result<u64> {
        let (root, relative) = self.locate(path)?;
        DirBuilder::new().recursive(true).mode(0o700).create(root)?;
        let (folder, name) = (open_folder(root, &relative)?, name(&relative)?);
        let temporary = format!(".{}.{:x}.new", name.to_string_lossy(), std::process::id());
        let written = self::create(&folder, &temporary, content)
            .and_then(|()| Ok(renameat(&folder, temporary.as_str(), &folder, name)?))
            .and_then(|()| Ok(fsync(&folder)?));
        if written.is_err() {
            let _ = unlinkat(&folder, temporary.as_str(), rustix::fs::AtFlags::empty());
        }
        written.map(|()| content.len() as u64)
    }

    /// Reads a file. Fails if the path is not allowed, or the file cannot be read or is too large.
    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let (root, relative) = self.locate(path)?;
        let (folder, name) = (open_folder(root, &relative)?, name(&relative)?);
        // Opening a pipe must not block.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat2(&folder, name, flags, Mode::empty(), INSIDE)?);
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > FILE_BYTES_LIMIT {
            return Err(io::Error::other("not a file, or too large"));
        }
        let mut content = Vec::new();
        file.take(FILE_BYTES_LIMIT).read_to_end(&mut content)?;
        Ok(content)
    }

    /// The allowed folder of a path, and the path relative to it.
    fn locate<'a>(&self, path: &'a Path) -> io::Result<(&Path, PathBuf)> {
        let is_plain = |rest: &&'a Path| {
            rest.components().all(|part| matches!(part, Component::Normal(_)))
                && *rest != Path::new("")
        };
        let within = |root: &PathBuf| path.strip_prefix(root).ok().filter(is_plain);
        let found = self.roots.iter().find_map(|root| Some((root.as_path(), within(root)?.into())));
        let json = path.extension().is_some_and(|end| end == "json");
        found.filter(|_| json).ok_or_else(|| {
            let roots: Vec<_> = self.roots.iter().map(|root| root.to_string_lossy()).collect();
            let why = format!("only .json files in {} are allowed", roots.join(" or "));
            io::Error::new(io::ErrorKind::PermissionDenied, why)
        })
    }
}

const INSIDE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

fn open_folder(root: &Path, relative: &Path) -> io::Result<OwnedFd> {
    let root = OwnedFd::from(fs::File::open(root)?);
    let parent = relative.parent().filter(|parent| *parent != Path::new(""));
    let parent = parent.unwrap_or(Path::new("."));
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(&root, parent, flags, Mode::empty(), INSIDE)?)
}

fn name(relative: &Path) -> io::Result<&std::ffi::OsStr> {
    relative.file_name().ok_or_else(|| io::Error::other("the path has no file name"))
}

fn create(folder: &OwnedFd, name: &str, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let mut file = File::from(openat2(folder, name, flags, Mode::RUSR | Mode::WUSR, INSIDE)?);
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_files_in_the_folders_are_read_and_written() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("new/sessions");
        let folders = Folders::new(vec![root.clone()]);
        let file = root.join("a.json");
        assert_eq!(folders.write(&file, b"one").unwrap(), 3);
        assert_eq!(folders.write(&file, b"three").unwrap(), 5);
        assert_eq!(folders.read(&file).unwrap(), b"three");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(root.read_dir().unwrap().count(), 1);
        std::fs::write(home.path().join("secret.json"), "x").unwrap();
        symlink(home.path(), root.join("way-out")).unwrap();
        symlink(home.path().join("secret.json"), root.join("link.json")).unwrap();
        let bad =
            ["../secret.json", "way-out/secret.json", "link.json", "a.txt", "", "none/a.json"];
        for bad in bad {
            assert!(folders.read(&root.join(bad)).is_err(), "{bad}");
        }
        for bad in ["../secret.json", "way-out/secret.json", "a.txt", "", "none/a.json"] {
            assert!(folders.write(&root.join(bad), b"evil").is_err(), "{bad}");
        }
        // A link is replaced, never written through.
        folders.write(&root.join("link.json"), b"new").unwrap();
        assert_eq!(std::fs::read_to_string(home.path().join("secret.json")).unwrap(), "x");
        assert!(folders.read(Path::new("/etc/passwd")).is_err());
    }
}
