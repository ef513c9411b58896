//! Which calls wait until they are let go on: those that can change files.

use std::collections::BTreeMap;
use std::io;

use quintet_seccomp::{ASK, Instruction, Listener};
use seccompiler::SeccompCmpArgLen::Dword;
use seccompiler::SeccompCmpOp::MaskedEq;
use seccompiler::{BpfProgram, Error, SeccompAction, SeccompCondition, SeccompFilter, SeccompRule};

use super::named::{ALWAYS, IF_WRITING};
use crate::sandbox::with_other_numbers;

/// The flags of `open` by any of which a file can change. Files opened to be read cost nothing.
const WRITING: [i32; 4] = [libc::O_WRONLY, libc::O_RDWR, libc::O_CREAT, libc::O_TRUNC];

/// The instruction that ends a filter with a fixed answer.
const RETURN: u16 = 0x06;

/// Puts the filter on this thread and whatever it starts.
pub(crate) fn listen() -> io::Result<Listener> {
    let program = program().map_err(io::Error::other)?;
    let program: Vec<_> = program
        .into_iter()
        .map(|it| Instruction { code: it.code, jt: it.jt, jf: it.jf, k: asking(it.code, it.k) })
        .collect();
    quintet_seccomp::listen(&program)
}

/// The library that makes filters does not know how to ask, but how to leave it to a tracer.
fn asking(code: u16, answer: u32) -> u32 {
    if code == RETURN && answer == libc::SECCOMP_RET_TRACE { ASK } else { answer }
}

fn program() -> Result<BpfProgram, Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        ALWAYS.iter().filter(|call| **call >= 0).map(|call| (*call, Vec::new())).collect();
    for (call, flags) in IF_WRITING.iter().filter(|(call, _)| *call >= 0) {
        rules.insert(
            *call,
            WRITING.iter().map(|flag| with(*flags, *flag)).collect::<Result<_, _>>()?,
        );
    }
    with_other_numbers(&mut rules);
    let here = std::env::consts::ARCH.try_into()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), here)?;
    Ok(filter.try_into()?)
}

fn with(argument: u8, flag: i32) -> Result<SeccompRule, Error> {
    let flag = u64::from(flag.unsigned_abs());
    let condition = SeccompCondition::new(argument, Dword, MaskedEq(flag), flag)?;
    Ok(SeccompRule::new(vec![condition])?)
}
