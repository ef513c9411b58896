//! seccomp: forbids sockets and system calls that reach into other processes or the kernel. Without namespaces, it
//! also forbids what Landlock cannot control.
//!
//! A forbidden call returns an error and does not kill the program. `EPERM` means that the call is not allowed;
//! `ENOSYS`, that the program should try another call, whose arguments can be checked.

use std::collections::BTreeMap;

use libc::c_int;
use rustix::process::getpid;
use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{self, Eq, Ge, Gt, Lt, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

mod table;

use super::Policy;

/// A call's number and when it is refused: if any rule matches, or always if there are no rules.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// An argument, a comparison and a value.
type Condition = (u8, SeccompCmpOp, u64);

const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
const FIOSETOWN: u64 = 0x8901;
const SIOCSPGRP: u64 = 0x8902;
const F_SETOWN_EX: u64 = 15;
/// The bits of a socket's type that are not flags.
const TYPE: u64 = 0xf;

/// What a command may ask of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AllowedCalls {
    /// Sockets of the internet.
    pub(super) internet: bool,
    /// Unix sockets: only where those of other programs are out of reach.
    pub(super) unix: bool,
    /// Cutting files short by their names: only where Landlock or namespaces guard them.
    pub(super) truncate: bool,
    /// Changing permissions, owners, times and attributes of files by their names: only where namespaces
    /// guard them or a person agreed. Files that a program has opened can be changed.
    pub(super) attributes: bool,
    /// Signals to any process: only where Landlock or namespaces guard them. Otherwise they reach no
    /// process that is older than the command, going by the numbers of processes.
    pub(super) signals: bool,
}

impl AllowedCalls {
    /// What a policy allows with this version of Landlock (0 for none).
    pub(super) fn of(policy: &Policy, landlock: i32) -> Self {
        let own = policy.namespaces;
        Self {
            internet: policy.network || own,
            // The network of the machine has abstract sockets, which Landlock guards from version 6 on.
            unix: own && (!policy.network || landlock >= 6),
            truncate: own || landlock == 0 || landlock >= 3,
            attributes: own || landlock == 0 || policy.attributes,
            signals: own || landlock == 0 || landlock >= 6,
        }
    }
}

/// Puts the filters on this thread and what it starts.
pub(super) fn restrict(allowed: AllowedCalls) -> Result<(), Error> {
    apply(&filter(refused(allowed)?, libc::EPERM)?)?;
    apply(&filter(always(&table::UNKNOWN), libc::ENOSYS)?)
}

fn apply(program: &BpfProgram) -> Result<(), Error> {
    apply_filter(program)
}

fn filter(mut rules: Rules, errno: c_int) -> Result<BpfProgram, Error> {
    table::with_other_numbers(&mut rules);
    let no = SeccompAction::Errno(errno.unsigned_abs());
    let here = std::env::consts::ARCH.try_into()?;
    Ok(SeccompFilter::new(rules, SeccompAction::Allow, no, here)?.try_into()?)
}

fn refused(allowed: AllowedCalls) -> Result<Rules, Error> {
    let mut rules = always(&table::REFUSED);
    if !allowed.truncate {
        rules.extend(always(&[libc::SYS_truncate]));
    }
    if !allowed.attributes {
        rules.extend(always(&table::ATTRIBUTES));
        // Without a name it is about a file that is open.
        let named = SeccompCondition::new(1, Qword, Ne, 0)?;
        rules.insert(libc::SYS_utimensat, vec![SeccompRule::new(vec![named])?]);
    }
    rules.insert(libc::SYS_socket, sockets(allowed)?);
    if !allowed.unix {
        // A datagram socket can be sent elsewhere even if it was made as one of a pair.
        let datagrams = rule(&[(1, MaskedEq(TYPE), of(libc::SOCK_DGRAM))])?;
        rules.insert(libc::SYS_socketpair, vec![datagrams]);
    }
    rules.insert(libc::SYS_clone, new_namespaces()?);
    // Keystrokes put into the user's terminal would be run by the user's shell.
    let keystrokes = [TIOCSTI, TIOCLINUX].map(|request| rule(&[(1, Eq, request)]));
    rules.insert(libc::SYS_ioctl, keystrokes.into_iter().collect::<Result<_, _>>()?);
    if !allowed.signals {
        add_signals(&mut rules, getpid().as_raw_pid().unsigned_abs())?;
    }
    // Limits of this very process are its own business.
    rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, Ne, 0)])?]);
    Ok(rules)
}

/// Refuses signals to processes with a lower pid than this one. Processes that a command starts have higher pids
/// until the kernel wraps around: from then on, a command's own processes may be unreachable, and older ones with
/// higher pids reachable. A filter sees only numbers, so this is the best possible here; Landlock from version 6 on
/// and namespaces are exact.
fn add_signals(rules: &mut Rules, own: u32) -> Result<(), Error> {
    let own = u64::from(own);
    // A negative number names a group of processes, or all.
    let refused = |arg: u8, more: &[Condition]| -> Result<Vec<SeccompRule>, Error> {
        let older = [(arg, Ge, 1), (arg, Lt, own)];
        let groups = [(arg, Gt, (1 << 32) - own)];
        Ok(vec![rule(&[&older, more].concat())?, rule(&[&groups, more].concat())?])
    };
    for call in table::SIGNALS {
        rules.insert(call, refused(0, &[])?);
    }
    // The kernel sends signals to the owner of a file.
    let mut owners = refused(2, &[(1, Eq, of(libc::F_SETOWN))])?;
    owners.push(rule(&[(1, Eq, F_SETOWN_EX)])?);
    rules.insert(libc::SYS_fcntl, owners);
    let ioctl = rules.entry(libc::SYS_ioctl).or_default();
    for request in [FIOSETOWN, SIOCSPGRP] {
        ioctl.push(rule(&[(1, Eq, request)])?);
    }
    Ok(())
}

/// When creating a socket is refused: always, or unless its family is allowed. In addition to internet sockets,
/// name resolution needs netlink for addresses and routes.
fn sockets(allowed: AllowedCalls) -> Result<Vec<SeccompRule>, Error> {
    let internet = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    let families = internet.into_iter().filter(|_| allowed.internet);
    let families = families.chain([libc::AF_UNIX].into_iter().filter(|_| allowed.unix));
    let others: Vec<_> = families.map(|family| (0, Ne, of(family))).collect();
    if others.is_empty() { Ok(Vec::new()) } else { Ok(vec![rule(&others)?]) }
}

fn new_namespaces() -> Result<Vec<SeccompRule>, Error> {
    let flags = [
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
    ];
    flags.into_iter().map(|flag| rule(&[(0, MaskedEq(of(flag)), of(flag))])).collect()
}

/// Conditions that must all hold.
fn rule(conditions: &[Condition]) -> Result<SeccompRule, Error> {
    let condition =
        |(arg, op, value): &Condition| SeccompCondition::new(*arg, Dword, op.clone(), *value);
    let conditions = conditions.iter().map(condition).collect::<Result<_, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

fn always(calls: &[i64]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn of(constant: c_int) -> u64 {
    u64::from(constant.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;
    use rustix::process::{Pid, getppid, test_kill_process};

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "it starts what a command would start")]
    fn signals_reach_no_older_process() {
        // Numbers begin again at some point, and then a parent may have a higher one than its child.
        let is_lower = |pid: &Pid| pid.as_raw_pid() < getpid().as_raw_pid();
        let older = [getppid().unwrap(), Pid::INIT].into_iter().find(is_lower).unwrap();
        assert_eq!(test_kill_process(older), Ok(()), "it proves nothing");
        // A filter holds for the thread that puts it on.
        let confined = std::thread::spawn(move || {
            super::super::privileges::give_up().unwrap();
            restrict(AllowedCalls { attributes: true, ..AllowedCalls::default() }).unwrap();
            assert_eq!(test_kill_process(older), Err(Errno::PERM));
            assert_eq!(test_kill_process(getpid()), Ok(()));
            let mut younger = std::process::Command::new("sleep").arg("100").spawn().unwrap();
            let child = Pid::from_child(&younger);
            assert!(is_lower(&child) || test_kill_process(child) == Ok(()));
            younger.kill().unwrap();
            younger.wait().unwrap();
        });
        confined.join().unwrap();
    }
}
