//! Limits what a command can access: its workspace, a scratch directory, and the system read-only.
//!
//! The daemon writes a `Policy` for each call. Where the kernel allows it, the supervisor enters
//! namespaces of the command's own (`namespaces.rs`), and the executable's `confine` subcommand, started
//! by it, builds a file system of what the policy names (`root_fs.rs`) and brings up a private loopback.
//! In any case `confine` applies Landlock for files and signals (`landlock_rules.rs`), seccomp for sockets and
//! the kernel's dangerous calls (`seccomp_filter.rs`), resource limits and capabilities (`limits.rs`,
//! `privileges.rs`), and starts the command. All of these are inherited and cannot be
//! removed. The supervisor itself is not confined, so that it can end every process.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod blocked;
mod confine;
mod confinement;
mod init;
mod landlock_rules;
mod limits;
mod loopback;
mod namespaces;
mod permissions;
mod policy;
mod privileges;
mod probe;
mod root_fs;
pub(crate) mod scratch;
mod seccomp_filter;
pub(crate) mod toolchains;

pub(crate) use blocked::Blocked;
pub use confine::main;
pub(crate) use confine::{VARIABLES, withdraw};
pub(crate) use confinement::{Confinement, Confiner, Refused, private_folder};
pub use limits::Limits;
pub use namespaces::{Network, try_namespaces};
pub(crate) use namespaces::{enter, enter_processes};
pub(crate) use permissions::{Permissions, openable};
pub(crate) use policy::{Policy, SYSTEM};
pub use probe::{KernelReport, opens_beneath, probe, report};

/// The hidden subcommand of the executable that confines itself and becomes a command.
pub(crate) const SUBCOMMAND: &str = "confine";

/// What commands are allowed.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// The behaviour on a kernel that does not support all of the sandbox.
    pub mode: Mode,
    /// Whether commands may use the network of the machine.
    pub network: bool,
    /// Readable paths in addition to the workspace, the system and the toolchains in `PATH`.
    pub extra_read: Vec<PathBuf>,
    /// Readable and writable paths in addition to the workspace.
    pub extra_write: Vec<PathBuf>,
    /// Folders that no permission opens, the daemon's own data above all.
    pub closed: Vec<PathBuf>,
    /// How much a process may use.
    pub limits: Limits,
}

/// The behaviour on a kernel that does not support all of the sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Commands do not run without seccomp and either namespaces or Landlock.
    #[default]
    Require,
    /// Commands run with what there is.
    Prefer,
    /// Commands run without a sandbox.
    Off,
}
