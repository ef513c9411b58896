//! `list_dir`: what is in one directory.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Outcome, ToolKind, ToolSpec};
use rustix::fs::{AtFlags, Dir, FileType, readlinkat, statat};
use serde::Deserialize;
use serde_json::json;

use crate::blocking::{self, CancelFlag};
use crate::{confined_fs, input, show};

/// The most entries that are listed.
const ENTRIES_LIMIT: usize = 1000;

/// The tool.
pub(crate) struct ListDir {
    spec: Arc<ToolSpec>,
}

#[derive(Debug, Deserialize)]
struct Input {
    path: Option<PathBuf>,
}

impl Input {
    fn path(&self) -> &Path {
        self.path.as_deref().filter(|path| !path.as_os_str().is_empty()).unwrap_or(".".as_ref())
    }
}

impl ListDir {
    pub(crate) fn new() -> Self {
        let description = format!(
            "List one directory of the workspace, sorted by name: folders end in `/`, files have \
             their size in bytes, links what they lead to. At most {ENTRIES_LIMIT} entries."
        );
        let properties = json!({
            "path": {
                "type": "string",
                "description": "The directory, relative to the workspace; default the workspace",
            },
        });
        Self { spec: super::spec(ToolKind::Read, "list_dir", description, properties, &[]) }
    }
}

impl Tool for ListDir {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = input::parse::<Input>(&call.input).map(|input| {
            let path = input.path().to_owned();
            (format!("list {}", path.display()), Some(path))
        });
        Box::pin(super::only_looks(call, preview))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            match input::parse::<Input>(&call.input) {
                Ok(input) => {
                    let list = move |flag: &CancelFlag| list(&call.workspace, input.path(), flag);
                    blocking::run_cancellable(&context, list).await
                }
                Err(why) => Outcome::failure(why).into(),
            }
        })
    }
}

fn list(workspace: &Path, path: &Path, flag: &CancelFlag) -> Result<ToolOutput, String> {
    let directory = confined_fs::directory(workspace, path).map_err(|error| error.to_string())?;
    let names = names(&directory, flag).map_err(|error| error.to_string())?;
    if names.is_empty() {
        return Ok(Outcome::success("the directory is empty").into());
    }
    let mut text = String::new();
    for name in names.iter().take(ENTRIES_LIMIT) {
        let _infallible = writeln!(text, "{}", describe(&directory, OsStr::from_bytes(name)));
    }
    if names.len() > ENTRIES_LIMIT {
        let _infallible =
            writeln!(text, "[{} more entries were left out]", names.len() - ENTRIES_LIMIT);
    }
    Ok(show::output(&text, "list.txt"))
}

fn names(directory: &OwnedFd, flag: &CancelFlag) -> rustix::io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if flag.is_cancelled() {
            break;
        }
        if name != b"." && name != b".." {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn describe(directory: &OwnedFd, name: &OsStr) -> String {
    let shown = show::path(name.as_ref());
    let Ok(found) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return shown;
    };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => format!("{shown}/"),
        FileType::RegularFile => format!("{shown} ({} bytes)", found.st_size),
        FileType::Symlink => match readlinkat(directory, name, Vec::new()) {
            Ok(target) => {
                let target = OsStr::from_bytes(target.to_bytes());
                format!("{shown} -> {}", show::path(target.as_ref()))
            }
            Err(_) => shown,
        },
        _ => format!("{shown} (special file)"),
    }
}
