//! How much a process of a command may use.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

const GIB: u64 = 1 << 30;

/// How much a process of a command may use. A limit that is lower already stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of private writable memory, used or reserved: package managers reserve ten times what they use.
    /// Not the address space, of which WebAssembly and JavaScript engines reserve far more.
    pub memory: u64,
    /// Bytes of the longest file.
    pub file: u64,
    /// Processes and threads of the user, others included. Does not bind root.
    pub processes: u64,
    /// Open files.
    pub open_files: u64,
    /// Seconds of processor time.
    pub cpu_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 32 * GIB,
            file: 4 * GIB,
            processes: 4096,
            open_files: 4096,
            cpu_seconds: 2 * 60 * 60,
        }
    }
}

impl Limits {
    /// Puts the limits on this process and what it starts.
    pub(super) fn apply(&self) -> Result<(), Errno> {
        let limits = [
            (Resource::Data, self.memory),
            (Resource::Fsize, self.file),
            (Resource::Nproc, self.processes),
            (Resource::Nofile, self.open_files),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Core, 0),
        ];
        limits.into_iter().try_for_each(|(resource, limit)| lower(resource, limit))
    }
}

fn lower(resource: Resource, limit: u64) -> Result<(), Errno> {
    let Rlimit { current, maximum } = getrlimit(resource);
    let at_most = |before: Option<u64>| Some(before.map_or(limit, |before| before.min(limit)));
    setrlimit(resource, Rlimit { current: at_most(current), maximum: at_most(maximum) })
}
