//! What the sandbox of a server on stdio opens: what its definition lists, and what its command line names.
//!
//! A folder in the arguments is there to be worked in, as with a server of files: it can be read and written. A file
//! is a script or its settings: it can be read, with the project or the folder that it is in, so that a script finds
//! its modules. The system, the home and what is above it are never opened as such a project or folder.
//!
//! What lies in a folder that is open anyway is not opened again: the server, or an agent's command, could have put
//! a link to anywhere in its place.

use std::path::{Path, PathBuf};

use quintet_kernel::port::{ServerSandbox, ToolServer, ToolTransport};

use crate::sandbox::{Mode, Permissions, SYSTEM, Sandbox, openable, toolchains};

/// Files that mark the folder of a project.
const PROJECT_MARKS: [&str; 2] = ["package.json", "pyproject.toml"];

/// Devices and processes are never opened by being named.
const SPECIAL: [&str; 2] = ["/dev", "/proc"];

/// The fewest parts of the path of a folder that is opened around a file: `/srv/x` may be, `/srv` is too much.
const PARTS_MINIMUM: usize = 3;

/// Decides what servers may access.
#[derive(Debug)]
pub(super) struct AccessPlanner<'a> {
    /// The user's home.
    pub(super) home: Option<&'a Path>,
    /// The workspace that the server may write in, if it belongs to one.
    pub(super) workspace: Option<&'a Path>,
    /// Folders that stay closed.
    pub(super) closed: &'a [PathBuf],
}

impl AccessPlanner<'_> {
    /// What a server may access beyond its own folder. Fails with the reason if it names what stays closed.
    pub(super) fn permissions(
        &self,
        arguments: &[String],
        sandbox: &ServerSandbox,
    ) -> Result<Permissions, String> {
        let ServerSandbox { network, read, write, .. } = sandbox.clone();
        let mut opened = Permissions { network, read, write, ..Permissions::default() };
        let arguments = named(arguments).filter(|path| !self.is_in_workspace(path));
        let (folders, files): (Vec<_>, Vec<_>) = arguments.partition(|path| path.is_dir());
        opened.write.extend(folders);
        opened.write = outermost(opened.write);
        let is_open = |path: &PathBuf| opened.write.iter().any(|open| path.starts_with(open));
        let files = files.iter().filter(|file| !is_open(file));
        opened.read.extend(files.flat_map(|file| self.around(file)));
        opened.read = outermost(opened.read);
        for path in opened.read.iter().chain(&opened.write) {
            openable(path, self.closed)?;
        }
        Ok(opened)
    }

    /// What has to be readable so that a program runs: the project or the folder of a program that is named by its
    /// path, and the toolchain that it, or what it is a link to, belongs to.
    pub(super) fn program(&self, program: &str, path: &[PathBuf]) -> Vec<PathBuf> {
        let named = Path::new(program);
        let mut found = Vec::new();
        let place = if program.contains('/') {
            found.extend(self.around(named).into_iter().filter(|_| named.is_absolute()));
            Some(named.to_owned()).filter(|named| named.is_absolute())
        } else {
            path.iter().map(|folder| folder.join(program)).find(|place| place.is_file())
        };
        let real = place.as_ref().and_then(|place| place.canonicalize().ok());
        let folders = place.iter().chain(&real).filter_map(|place| place.parent());
        let folders: Vec<PathBuf> =
            folders.filter(|folder| self.is_bounded(folder)).map(Path::to_owned).collect();
        found.extend(toolchains::readable(&folders, self.home));
        found
    }

    fn is_in_workspace(&self, path: &Path) -> bool {
        self.workspace.is_some_and(|workspace| path.starts_with(workspace))
    }

    /// The project that a file belongs to, else its folder, else the file alone; the same for what it links to.
    fn around(&self, file: &Path) -> Vec<PathBuf> {
        let real = file.canonicalize().ok().filter(|real| real != file);
        let whole = |file: &Path| {
            let folders = || file.ancestors().skip(1).filter(|folder| self.is_bounded(folder));
            let is_project =
                |folder: &&Path| PROJECT_MARKS.iter().any(|mark| folder.join(mark).is_file());
            folders().find(is_project).or(folders().next()).unwrap_or(file).to_owned()
        };
        std::iter::once(file).chain(real.as_deref()).map(whole).collect()
    }

    /// True if a folder can be opened for the sake of one file in it.
    fn is_bounded(&self, folder: &Path) -> bool {
        let holds = |other: &Path| other.starts_with(folder);
        folder.components().count() >= PARTS_MINIMUM
            && !self.home.is_some_and(holds)
            && !self.closed.iter().any(|closed| holds(closed))
    }
}

/// The paths among a command's arguments, also as `--option=/path`, that exist and are not the system's, which is
/// readable anyway.
fn named(arguments: &[String]) -> impl Iterator<Item = PathBuf> {
    let path = |word: &String| {
        let value = word.split_once('=').filter(|(option, _)| option.starts_with('-'));
        PathBuf::from(value.map_or(word.as_str(), |(_, value)| value))
    };
    let is_system = |path: &PathBuf| SYSTEM.iter().chain(&SPECIAL).any(|it| path.starts_with(it));
    arguments.iter().map(path).filter(move |path| {
        path.is_absolute() && path.parent().is_some() && !is_system(path) && path.exists()
    })
}

/// Paths without those that lie in another one of them.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort();
    paths.dedup_by(|path, before| path.starts_with(before));
    paths
}

/// The sandbox of a server, which may belong to a workspace, in words for people; nothing for a server over HTTP.
/// Fails with the reason if the server cannot be started in it.
pub fn sandbox_words(
    server: &ToolServer,
    workspace: Option<&Path>,
    sandbox: &Sandbox,
) -> Option<Result<String, String>> {
    let ToolTransport::Stdio { command, sandbox: own, .. } = &server.transport else { return None };
    if !own.enabled || sandbox.mode == Mode::Off {
        return Some(Ok("no sandbox".to_owned()));
    }
    let home = std::env::home_dir();
    let planner = AccessPlanner { home: home.as_deref(), workspace, closed: &sandbox.closed };
    let opened = planner.permissions(command.get(1..).unwrap_or_default(), own);
    Some(opened.map(|opened| {
        let network = if opened.network { "network" } else { "no network" };
        let read = opened.read.iter().map(|path| format!("reads {}", path.display()));
        let write = opened.write.iter().map(|path| format!("writes {}", path.display()));
        let words: Vec<String> =
            std::iter::once(network.to_owned()).chain(read).chain(write).collect();
        format!("sandbox: {}", words.join(", "))
    }))
}

#[cfg(test)]
mod tests;
