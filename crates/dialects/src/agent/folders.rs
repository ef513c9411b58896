//! Lists folders, for clients that let the user choose a workspace. File contents are not shown.

use std::io;
use std::path::{Component, Path, PathBuf};

use quintet_kernel::Time;
use serde_json::{Value, json};
use tokio::fs;

use super::dispatch::Reply;
use super::serve::AppState;
use super::wire::FILESYSTEM_ERROR;
use crate::jsonrpc::Error;

/// Folders in the home folder that usually contain projects.
const PROJECT_FOLDERS: [&str; 10] = [
    "Desktop",
    "Documents",
    "Downloads",
    "projects",
    "code",
    "Development",
    "dev",
    "src",
    "workspace",
    "work",
];
/// The most entries of a listing.
const ENTRIES_LIMIT: usize = 10_000;

impl AppState {
    pub(super) async fn folder(&self, path: Option<&str>, hidden: bool) -> Result<Reply, Error> {
        let path = match path {
            Some(path) => absolute(path)?,
            None => self.home_folder(),
        };
        let mut entries =
            read_folder(&path, hidden).await.map_err(|error| filesystem_error(&path, &error))?;
        entries.sort_by_key(|entry| {
            let name = entry["name"].as_str().unwrap_or_default().to_lowercase();
            (entry["isDirectory"] != true, name)
        });
        let parent = path.parent().map(|parent| parent.to_string_lossy().into_owned());
        let path = path.to_string_lossy();
        Ok(json!({ "path": path, "parent": parent, "entries": entries }).into())
    }

    pub(super) async fn home(&self) -> Value {
        let home = self.home_folder();
        let mut suggested = vec![suggestion("Home", &home)];
        for name in PROJECT_FOLDERS {
            let path = home.join(name);
            if fs::metadata(&path).await.is_ok_and(|found| found.is_dir()) {
                suggested.push(suggestion(name, &path));
            }
        }
        json!({ "homePath": home.to_string_lossy(), "suggestedPaths": suggested })
    }

    pub(super) async fn make_folder(&self, path: &str, parents: bool) -> Result<Reply, Error> {
        let path = absolute(path)?;
        let created = if !parents {
            fs::create_dir(&path).await
        } else if fs::metadata(&path).await.is_ok() {
            Err(io::Error::from(io::ErrorKind::AlreadyExists))
        } else {
            fs::create_dir_all(&path).await
        };
        created.map_err(|error| filesystem_error(&path, &error))?;
        Ok(json!({ "created": true, "path": path.to_string_lossy() }).into())
    }

    fn home_folder(&self) -> PathBuf {
        self.settings.home.clone().unwrap_or_else(|| PathBuf::from("/"))
    }
}

/// Checks that a path is absolute and has no `..`. Fails otherwise.
fn absolute(path: &str) -> Result<PathBuf, Error> {
    let path = Path::new(path);
    let plain = |part: Component<'_>| {
        matches!(part, Component::RootDir | Component::Normal(_) | Component::CurDir)
    };
    if path.is_absolute() && path.components().all(plain) {
        Ok(path.components().collect())
    } else {
        Err(Error::field("path", "an absolute path without .."))
    }
}

async fn read_folder(path: &Path, hidden: bool) -> io::Result<Vec<Value>> {
    let (mut found, mut entries) = (fs::read_dir(path).await?, Vec::new());
    while let Some(entry) = found.next_entry().await? {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entries.len() == ENTRIES_LIMIT {
            break;
        }
        if hidden || !name.starts_with('.') {
            entries.push(encode_entry(name, &entry).await);
        }
    }
    Ok(entries)
}

async fn encode_entry(name: String, entry: &fs::DirEntry) -> Value {
    let kind = entry.file_type().await.ok();
    let folder = kind.is_some_and(|kind| kind.is_dir());
    let mut shown = json!({
        "name": name,
        "path": entry.path().to_string_lossy(),
        "isDirectory": folder,
        "isSymlink": kind.is_some_and(|kind| kind.is_symlink()),
    });
    if let (false, Ok(metadata)) = (folder, entry.metadata().await) {
        shown["size"] = metadata.len().into();
        if let Some(at) = modified(&metadata) {
            shown["modifiedAt"] = at.to_rfc3339_millis().into();
        }
    }
    shown
}

fn modified(metadata: &std::fs::Metadata) -> Option<Time> {
    let since = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_micros()).ok().map(Time::from_micros)
}

fn suggestion(name: &str, path: &Path) -> Value {
    json!({ "name": name, "path": path.to_string_lossy(), "exists": true })
}

fn filesystem_error(path: &Path, error: &io::Error) -> Error {
    Error::new(FILESYSTEM_ERROR, format!("{}: {error}", path.display()))
}
