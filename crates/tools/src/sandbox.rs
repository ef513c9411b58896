//! What a command may touch: its workspace, a scratch directory, and the system to read.
//!
//! The daemon writes a [`Policy`] for each call. The executable's `confine` subcommand, started by
//! the supervisor, puts it on itself and becomes the command: Landlock for files, TCP and signals
//! (`files.rs`), seccomp for sockets and the kernel's dangerous calls (`calls.rs`), resource limits
//! and capabilities (`limits.rs`, `privileges.rs`). All of these are inherited and none can be
//! taken off again. The supervisor itself stays free, so that it can end whatever runs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

mod calls;
mod confine;
mod files;
mod limits;
mod policy;
mod privileges;
mod probe;
mod room;
mod toolchains;

pub use confine::main;
pub(crate) use confine::withdraw;
pub use limits::Limits;
pub(crate) use policy::Policy;
pub use probe::{Report, opens_beneath, probe};
pub(crate) use room::{Refused, Room, Rooms};

/// The hidden subcommand of the executable that confines itself and becomes a command.
pub(crate) const SUBCOMMAND: &str = "confine";

/// What commands are allowed.
#[derive(Clone, Debug, Default)]
pub struct Sandbox {
    /// What happens where the kernel cannot do it all.
    pub mode: Mode,
    /// Whether commands may use the network. Unix sockets stay out of reach.
    pub network: bool,
    /// What may be read besides the workspace, the system and the toolchains in `PATH`.
    pub extra_read: Vec<PathBuf>,
    /// What may be read and written besides the workspace.
    pub extra_write: Vec<PathBuf>,
    /// How much a process may use.
    pub limits: Limits,
}

/// What happens where the kernel cannot do it all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Commands do not run without Landlock and seccomp.
    Require,
    /// Commands run with what there is.
    #[default]
    Prefer,
    /// Commands run without a sandbox.
    Off,
}
