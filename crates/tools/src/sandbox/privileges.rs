//! Drops the privileges of a daemon that runs as root.
//!
//! With `no_new_privs`, a program that is started later cannot regain them.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities, set_no_new_privs};

/// What root may keep: to be root among its own files.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_NICE);

/// Gives up, for this thread and what it starts, what a command has no use for.
pub(super) fn give_up() -> Result<(), Errno> {
    set_no_new_privs(true)?;
    let mut sets = capabilities(None)?;
    sets.effective &= KEPT_CAPABILITIES;
    sets.permitted &= KEPT_CAPABILITIES;
    sets.inheritable &= KEPT_CAPABILITIES;
    set_capabilities(None, sets)
}
