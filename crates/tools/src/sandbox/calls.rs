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

/// A call's number and when it is refused: if any rule holds, or always if there is none.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

const TIOCSTI: u64 = 0x5412;
const TIOCLINUX: u64 = 0x541c;
/// The bits of a socket's type that are not flags.
const TYPE: u64 = 0xf;

/// Puts the filters on this thread and what it starts.
pub(super) fn restrict(network: bool) -> Result<(), Error> {
    apply(&filter(refused(network)?, libc::EPERM)?)?;
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

fn refused(network: bool) -> Result<Rules, Error> {
    let mut rules = always(&table::REFUSED);
    rules.insert(libc::SYS_socket, if network { unless_internet()? } else { Vec::new() });
    // A datagram socket can be sent elsewhere even if it was made as one of a pair.
    rules.insert(libc::SYS_socketpair, vec![rule(&[(1, MaskedEq(TYPE), of(libc::SOCK_DGRAM))])?]);
    rules.insert(libc::SYS_clone, new_namespaces()?);
    // Keystrokes put into the user's terminal would be run by the user's shell.
    let keystrokes = [TIOCSTI, TIOCLINUX].map(|request| rule(&[(1, SeccompCmpOp::Eq, request)]));
    rules.insert(libc::SYS_ioctl, keystrokes.into_iter().collect::<Result<_, _>>()?);
    // Limits of this very process are its own business.
    rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, Ne, 0)])?]);
    Ok(rules)
}

/// Besides the internet, the kernel is asked for its addresses and routes when names are looked up.
fn unless_internet() -> Result<Vec<SeccompRule>, Error> {
    let allowed = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];
    Ok(vec![rule(&allowed.map(|family| (0, Ne, of(family))))?])
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
