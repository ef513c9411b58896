//! What one command may do, as the daemon writes it and `confine` reads it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Limits, Mode, Sandbox, toolchains};
use crate::repository;

/// Directories of the system, to read and execute. Those that are not there are left out.
pub(super) const SYSTEM: [&str; 14] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/snap", "/proc", "/sys",
];

/// What git reads of the user's: without it, it refuses to work at all. Its credentials lie beside
/// these and stay hidden.
const GIT: [&str; 4] =
    [".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes"];

/// Often a link to a place outside of `/etc`; names cannot be looked up without it.
const RESOLVER: &str = "/etc/resolv.conf";

/// What one command may do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(super) mode: Mode,
    pub(super) network: bool,
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
    /// What a command may do whose own are this workspace and scratch directory. Looks at the file system: a toolchain that was
    /// installed a moment ago is found.
    pub(super) fn new(sandbox: &Sandbox, user: &User, own: [&Path; 2]) -> Self {
        let home = user.home.as_deref();
        let mut read: Vec<PathBuf> = SYSTEM.map(PathBuf::from).into();
        read.extend(toolchains::readable(&user.path, home));
        read.extend(home.iter().flat_map(|home| GIT.map(|file| home.join(file))));
        read.extend(sandbox.network.then(|| RESOLVER.into()));
        read.extend(repository::readable(own[0]));
        read.extend(sandbox.extra_read.iter().cloned());
        let mut write: Vec<PathBuf> = own.map(Path::to_owned).into();
        write.extend(sandbox.extra_write.iter().cloned());
        let (mode, network, limits) = (sandbox.mode, sandbox.network, sandbox.limits);
        Self { mode, network, read, write, limits }
    }
}
