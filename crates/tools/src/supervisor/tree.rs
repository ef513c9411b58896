//! Waiting for a command and ending what it left behind.
//!
//! Only direct children are ever signalled by pid: they stay zombies until this process reaps
//! them, so a pid cannot have been reused. Deeper descendants become direct children as
//! their parents die, and the sweep continues until there are none.

use std::time::Duration;
use std::{io, thread};

use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, waitid,
    waitpid,
};

use super::proc;

/// How long a process may take to end itself after it was asked to.
pub(super) const TERMINATION_GRACE: Duration = Duration::from_millis(200);

/// How often the sweep looks again.
const TICK: Duration = Duration::from_millis(5);
const GRACE_ROUNDS: u32 = 40;
/// After ten seconds of SIGKILL, a remaining process belongs to another user or is stuck in the kernel; waiting
/// longer would only delay the turn.
const KILL_ROUNDS: u32 = 2000;

const ZOMBIE: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOWAIT);

/// Waits until the leader has exited, without reaping it; reaps orphans on the way.
pub(super) fn await_exit(leader: Pid) -> io::Result<()> {
    loop {
        retry_on_intr(|| waitid(WaitId::All, ZOMBIE))?;
        if waitid(WaitId::Pid(leader), ZOMBIE | WaitIdOptions::NOHANG)?.is_some() {
            return Ok(());
        }
        // Without /proc the orphan cannot be identified; it is left for init to reap.
        if !adopted(leader).is_ok_and(|orphans| orphans.reaped) {
            retry_on_intr(|| waitid(WaitId::Pid(leader), ZOMBIE))?;
            return Ok(());
        }
    }
}

/// Ends every descendant but the leader, which has exited already.
pub(super) fn sweep(leader: Pid) {
    if let Err(error) = try_sweep(leader) {
        // Without /proc the group is all that can be found.
        signal_group(leader, Signal::KILL);
        eprintln!("quintet: cannot look for processes left behind: {error}");
    }
}

fn try_sweep(leader: Pid) -> io::Result<()> {
    if clear(leader, Signal::TERM, GRACE_ROUNDS)? || clear(leader, Signal::KILL, KILL_ROUNDS)? {
        return Ok(());
    }
    for pid in adopted(leader)?.alive {
        eprintln!("quintet: process {pid} could not be ended");
    }
    Ok(())
}

/// Kills a supervisor that does not exit, because it was stopped, and everything below it.
///
/// As long as the supervisor exists, its whole tree stays below it, so it is killed last.
pub(crate) fn kill_tree(supervisor: Pid) {
    for _ in 0..GRACE_ROUNDS {
        match proc::descendants(supervisor) {
            Ok(left) if !left.is_empty() => signal_each(&left, Signal::KILL),
            Ok(_) | Err(_) => break,
        }
        thread::sleep(TICK);
    }
    let _gone = kill_process(supervisor, Signal::KILL);
}

/// The exit code of the leader, which is reaped; 128 and the signal if one killed it.
pub(super) fn code(leader: Pid) -> io::Result<u8> {
    let status = retry_on_intr(|| waitpid(Some(leader), WaitOptions::empty()))?;
    let code = status.and_then(|(_, status)| {
        status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal))
    });
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(125))
}

/// Signals the leader and its group. An exited process needs no signal.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    let _gone = kill_process_group(leader, signal);
    let _gone = kill_process(leader, signal);
}

/// Signals the rest of the tree until it has ended; false if some of it remains.
///
/// SIGTERM is sent once, so that a handler is not called again while it runs.
fn clear(leader: Pid, signal: Signal, rounds: u32) -> io::Result<bool> {
    for round in 0..rounds {
        let orphans = adopted(leader)?;
        if orphans.none() {
            return Ok(true);
        }
        if round == 0 || signal == Signal::KILL {
            signal_group(leader, signal);
            signal_each(&orphans.alive, signal);
        }
        thread::sleep(TICK);
    }
    Ok(false)
}

fn signal_each(orphans: &[Pid], signal: Signal) {
    for pid in orphans {
        let _gone = kill_process(*pid, signal);
    }
}

/// The children of this process other than the leader.
struct Orphans {
    alive: Vec<Pid>,
    reaped: bool,
}

impl Orphans {
    /// True if there was no orphan, dead or alive; then there is no other descendant either.
    ///
    /// A reaped one may have left a child that appeared after the scan.
    fn none(&self) -> bool {
        self.alive.is_empty() && !self.reaped
    }
}

/// Looks for children other than the leader and reaps the dead.
fn adopted(leader: Pid) -> io::Result<Orphans> {
    let mut found = Orphans { alive: Vec::new(), reaped: false };
    for pid in proc::children()?.into_iter().filter(|pid| *pid != leader) {
        match waitpid(Some(pid), WaitOptions::NOHANG) {
            Ok(None) | Err(Errno::INTR) => found.alive.push(pid),
            Ok(Some(_)) | Err(_) => found.reaped = true,
        }
    }
    Ok(found)
}
