//! The namespaces of a command: processes, network, shared memory and, for users other than root, a user namespace,
//! without which the others are not allowed.
//!
//! The supervisor enters them before it starts the command; the mount namespace comes later
//! ([`super::root_fs`]), because the supervisor needs the original file system.

use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{getgid, getuid};
use rustix::thread::{
    CapabilitySet, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};

use super::Policy;
use crate::supervisor;

/// Whether a command has the machine's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Nothing but a loopback of its own.
    Private,
    /// The network of the machine.
    Shared,
}

impl Network {
    /// The name of the network on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Shared => "shared",
        }
    }

    /// Parses the name of a network.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Private, Self::Shared].into_iter().find(|network| network.word() == word)
    }
}

/// Enters new namespaces for users, the network and shared memory.
///
/// Call it before any other thread is started.
///
/// # Errors
/// If the kernel does not allow it.
pub(crate) fn enter(network: Network) -> io::Result<()> {
    let mut flags = UnshareFlags::NEWIPC;
    if network == Network::Private {
        flags |= UnshareFlags::NEWNET;
    }
    if capabilities(None)?.effective.contains(CapabilitySet::SYS_ADMIN) {
        return unshare(flags);
    }
    let (user, group) = (getuid().as_raw(), getgid().as_raw());
    unshare(flags | UnshareFlags::NEWUSER)?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    pass_on(&[CapabilitySet::SYS_ADMIN, CapabilitySet::NET_ADMIN])
}

/// Has the next program keep capabilities over the new namespaces, to set them up; it gives them up
/// before it starts the command.
fn pass_on(needed: &[CapabilitySet]) -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= needed.iter().copied().collect::<CapabilitySet>();
    set_capabilities(None, sets)?;
    for capability in needed {
        configure_capability_in_ambient_set(*capability, true)?;
    }
    Ok(())
}

/// Has the next process that is started be the first of a new process namespace. From then on this
/// thread cannot start threads.
///
/// # Errors
/// If the kernel does not allow it.
pub(crate) fn enter_processes() -> io::Result<()> {
    unshare(UnshareFlags::NEWPID)
}

#[expect(deprecated, reason = "only unsharing open files is unsafe, and nobody here does")]
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flags)?)
}

/// Finds out whether commands can have namespaces, by running one that does nothing. `executable` has
/// the subcommands of the supervisor and the sandbox.
///
/// # Errors
/// Why they cannot.
#[expect(clippy::disallowed_methods, reason = "this tries what commands are started with")]
pub fn try_namespaces(executable: &Path) -> Result<(), String> {
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let policy = serde_json::to_string(&Policy::trial(scratch.path())).unwrap_or_default();
    let mut command = Command::new(executable);
    command
        .args([supervisor::SUBCOMMAND, "--confined", "--namespaces", Network::Private.word(), "--"])
        .arg(executable)
        .args([super::SUBCOMMAND, &policy, "--", "/bin/true"])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // The supervisor ends its command once its input ends, so that must stay open.
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let control = child.stdin.take();
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    drop(control);
    if ended.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ended.stderr);
    Err(said
        .lines()
        .last()
        .unwrap_or("the trial failed")
        .trim_start_matches("quintet: ")
        .to_owned())
}
