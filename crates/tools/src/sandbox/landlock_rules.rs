//! Landlock: limits which files a command can access, and forbids signals and abstract sockets to processes
//! outside of the sandbox. Without namespaces, it also forbids TCP.
//!
//! Rules that the kernel does not support are left out; [`super::probe`] reports the supported version.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, LandlockStatus, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, make_bitflags, path_beneath_rules,
};

use super::Policy;

/// The newest version of Landlock that is used.
const NEWEST: ABI = ABI::V9;

const READ: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});

/// A device file made by root would be a way to every disk, so none can be made.
const NEVER: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev | ResolveUnix});

/// Devices that programs take for granted.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// Terminals, where they are the command's own.
const TERMINALS: [&str; 3] = ["/dev/tty", "/dev/ptmx", "/dev/pts"];
const STREAM: BitFlags<AccessFs> = make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate});

/// The directory of semaphores and shared memory. It cannot be listed, so only a program that knows the
/// name of an object can open it.
const SHARED: [&str; 1] = ["/dev/shm"];
const OBJECTS: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | Truncate | MakeReg | RemoveFile});

/// Restricts this thread, and what it starts, to the policy.
pub(super) fn restrict(policy: &Policy) -> Result<LandlockStatus, RulesetError> {
    let mut ruleset = Ruleset::default().handle_access(AccessFs::from_all(NEWEST))?;
    // A network namespace has nothing but a loopback of its own.
    if !policy.network && !policy.namespaces {
        ruleset = ruleset.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp)?;
    }
    let never = if policy.namespaces { NEVER & !AccessFs::ResolveUnix } else { NEVER };
    let write = AccessFs::from_all(NEWEST) & !never;
    // Those of the machine are the user's other terminals.
    let terminals: &[&str] = if policy.namespaces { &TERMINALS } else { &[] };
    let status = ruleset
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(&policy.read, READ))?
        .add_rules(path_beneath_rules(&policy.write, write))?
        .add_rules(path_beneath_rules(policy.private(), write))?
        .add_rules(path_beneath_rules(DEVICES, STREAM))?
        .add_rules(path_beneath_rules(terminals, STREAM | AccessFs::ReadDir | AccessFs::IoctlDev))?
        .add_rules(path_beneath_rules(SHARED, OBJECTS))?
        .restrict_self()?;
    Ok(status.landlock)
}

/// The kernel's version of Landlock. Restricts this thread: call it in one that ends.
pub(super) fn version() -> Option<i32> {
    let ruleset = Ruleset::default().handle_access(AccessFs::MakeBlock).ok()?;
    match ruleset.create().ok()?.restrict_self().ok()?.landlock {
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            Some(kernel_abi.unwrap_or(effective_abi as i32))
        }
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    }
}
