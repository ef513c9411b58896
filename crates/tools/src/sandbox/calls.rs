//! seccomp: no sockets, and none of the calls that reach into other processes or the kernel.
//!
//! A call is refused, not punished: programs are used to being told "no". `EPERM` means that it is
//! not allowed; `ENOSYS`, that another call should be tried, whose arguments can be looked at.

use std::collections::BTreeMap;

use libc::c_int;
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::{self, MaskedEq, Ne};
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule, apply_filter,
};

mod table;

use super::Policy;

/// A call's number and when it is refused: if any rule holds, or always if there is none.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
/// The bits of a socket's type that are not flags.
const TYPE: u64 = 0xf;

/// What a command may ask of the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Calls {
    /// Sockets of the internet.
    pub(super) internet: bool,
    /// Unix sockets: only where those of other programs are out of reach.
    pub(super) unix: bool,
    /// Cutting files short by their names: only where Landlock or namespaces guard them.
    pub(super) truncate: bool,
    /// Giving files to other users: only where namespaces guard them.
    pub(super) chown: bool,
}

impl Calls {
    /// What a policy allows where Landlock has this version; 0 if there is none.
    pub(super) fn of(policy: &Policy, landlock: i32) -> Self {
        let own = policy.namespaces;
        Self {
            internet: policy.network || own,
            // The network of the machine has abstract sockets, which Landlock guards from version 6 on.
            unix: own && (!policy.network || landlock >= 6),
            truncate: own || landlock == 0 || landlock >= 3,
            chown: own || landlock == 0,
        }
    }
}

/// Puts the filters on this thread and what it starts.
pub(super) fn restrict(allowed: Calls) -> Result<(), Error> {
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

fn refused(allowed: Calls) -> Result<Rules, Error> {
    let mut rules = always(&table::REFUSED);
    if !allowed.truncate {
        rules.extend(always(&[libc::SYS_truncate]));
    }
    if !allowed.chown {
        rules.extend(always(&table::OWNERS));
    }
    rules.insert(libc::SYS_socket, sockets(allowed)?);
    if !allowed.unix {
        // A datagram socket can be sent elsewhere even if it was made as one of a pair.
        let datagrams = rule(&[(1, MaskedEq(TYPE), of(libc::SOCK_DGRAM))])?;
        rules.insert(libc::SYS_socketpair, vec![datagrams]);
    }
    rules.insert(libc::SYS_clone, new_namespaces()?);
    // Keystrokes put into the user's terminal would be run by the user's shell.
    let keystrokes = [TIOCSTI, TIOCLINUX].map(|request| rule(&[(1, SeccompCmpOp::Eq, request)]));
    rules.insert(libc::SYS_ioctl, keystrokes.into_iter().collect::<Result<_, _>>()?);
    // Limits of this very process are its own business.
    rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, Ne, 0)])?]);
    Ok(rules)
}

/// When making a socket is refused: always, or unless it is of a family that is allowed. Besides the
/// internet, the kernel is asked for its addresses and routes when names are looked up.
fn sockets(allowed: Calls) -> Result<Vec<SeccompRule>, Error> {
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

/// Conditions (argument, comparison, value) that must all hold.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, Error> {
    let condition = |(arg, op, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*arg, Dword, op.clone(), *value)
    };
    let conditions = conditions.iter().map(condition).collect::<Result<_, _>>()?;
    Ok(SeccompRule::new(conditions)?)
}

fn always(calls: &[i64]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn of(constant: c_int) -> u64 {
    u64::from(constant.unsigned_abs())
}
