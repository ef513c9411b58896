//! What one command may do, as the daemon writes it and `confine` reads it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Limits, Mode, Sandbox, toolchains};
use crate::repository;

/// Directories of the system, to read and execute. Those that are not there are left out.
pub(crate) const SYSTEM: [&str; 14] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/snap", "/proc", "/sys",
];

/// The user's git configuration, without which git refuses to work. The credentials next to it stay hidden.
const GIT: [&str; 4] =
    [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];

/// Often a link to a place outside of `/etc`; names cannot be looked up without it.
const RESOLVER: &str = "/etc/resolv.conf";

/// What one command may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(super) mode: Mode,
    pub(super) network: bool,
    /// True if the supervisor entered namespaces.
    #[serde(default)]
    pub(super) namespaces: bool,
    /// True if permissions, owners and times of files may be changed by their names, wherever these are.
    #[serde(default)]
    pub(super) attributes: bool,
    /// Where the command runs.
    #[serde(default)]
    pub(super) workspace: PathBuf,
    /// What becomes `/tmp` in namespaces.
    #[serde(default)]
    pub(super) scratch: PathBuf,
    /// The user's home, which is empty and private in namespaces.
    #[serde(default)]
    pub(super) home: Option<PathBuf>,
    pub(super) read: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    pub(super) limits: Limits,
}

/// Where the user's own things are.
#[derive(Debug)]
pub(crate) struct User {
    pub(crate) path: Vec<PathBuf>,
    pub(crate) home: Option<PathBuf>,
}

impl Policy {
    /// What a command in this workspace may do, but for its scratch directory. Looks at the file system:
    /// a toolchain that was installed a moment ago is found.
    pub(super) fn new(sandbox: &Sandbox, user: &User, workspace: &Path, namespaces: bool) -> Self {
        let home = user.home.as_deref();
        let mut read: Vec<PathBuf> = SYSTEM.map(PathBuf::from).into();
        read.extend(toolchains::readable(&user.path, home));
        read.extend(home.iter().flat_map(|home| GIT.map(|file| home.join(file))));
        read.extend(sandbox.network.then(|| RESOLVER.into()));
        read.extend(repository::readable(workspace));
        read.extend(sandbox.extra_read.iter().cloned());
        let mut write = vec![workspace.to_owned()];
        write.extend(sandbox.extra_write.iter().cloned());
        let (mode, network, limits) = (sandbox.mode, sandbox.network, sandbox.limits);
        let (scratch, home) = (PathBuf::new(), user.home.clone());
        // A new root has the links on the way to a place, but for links to links.
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        Self {
            mode,
            network,
            namespaces,
            attributes: namespaces || mode != Mode::Require,
            workspace,
            scratch,
            home,
            read,
            write,
            limits,
        }
    }

    /// What a command may do that only tries whether namespaces work.
    pub(super) fn trial(scratch: &Path) -> Self {
        let (sandbox, user) = (Sandbox::default(), User { path: Vec::new(), home: None });
        let sandbox = Sandbox { mode: Mode::Prefer, ..sandbox };
        Self { scratch: scratch.to_owned(), ..Self::new(&sandbox, &user, scratch, true) }
    }

    /// Leaves a process nothing.
    pub(super) fn nothing(limits: Limits) -> Self {
        Self {
            mode: Mode::Prefer,
            network: false,
            namespaces: false,
            attributes: false,
            workspace: PathBuf::new(),
            scratch: PathBuf::new(),
            home: None,
            read: Vec::new(),
            write: Vec::new(),
            limits,
        }
    }

    /// Paths that may be read and written in addition to those that the policy names; in namespaces these are
    /// private to the command.
    pub(super) fn private(&self) -> Vec<PathBuf> {
        let own = ["/tmp", "/dev/shm"].map(PathBuf::from).into_iter().chain(self.home.clone());
        if self.namespaces { own.collect() } else { Vec::new() }
    }
}
