//! Which processes are commands of the agent: those that this one started, and theirs.
//!
//! A supervisor adopts whatever a command leaves behind, so that what a command starts stays below this
//! process for as long as it lives.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, getpid, waitid};

/// How often the tree is looked at that does not hold still.
const LOOKS: usize = 3;

/// A process of this machine.
type Id = i32;

/// Whether this process has any child; if not, there are no commands.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::All, options).err() != Some(Errno::CHILD)
}

/// Whether a process was started by this one or by one that was. One that is gone could have been.
pub(in super::super) fn is_command(process: Option<Id>) -> bool {
    if !has_children() {
        return false;
    }
    let own = getpid().as_raw_pid();
    let mut process = process.filter(|process| *process > 0);
    while let Some(id) = process {
        match parent(id) {
            Some(above) if above == own => return true,
            Some(0) => return false,
            above => process = above,
        }
    }
    true
}

/// Whether a socket belongs to a process that is no command of ours. While commands come and go it has
/// to be found with somebody else.
pub(super) fn is_held_by_others(socket: u32) -> bool {
    if !has_children() {
        return true;
    }
    let link = format!("socket:[{socket}]");
    let mut seen = HashSet::new();
    for look in 0..LOOKS {
        let (commands, others) = processes();
        let held: Vec<Option<bool>> = commands.iter().map(|id| holds(*id, &link)).collect();
        if held.contains(&Some(true)) {
            return false;
        }
        if look == 0 && others.iter().any(|id| holds(*id, &link) == Some(true)) {
            return true;
        }
        let news = commands.into_iter().filter(|id| seen.insert(*id)).count();
        // The holder may hide from this user, as some programs do. All commands were looked at.
        if look > 0 && news == 0 && !held.contains(&None) {
            return true;
        }
    }
    false
}

/// The commands of the agent, and all other processes.
fn processes() -> (Vec<Id>, Vec<Id>) {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<Id>().ok());
    let parents: HashMap<Id, Id> = ids.filter_map(|id| Some((id, parent(id)?))).collect();
    let own = getpid().as_raw_pid();
    let is_below = |id: Id| {
        let above = std::iter::successors(parents.get(&id), |id| parents.get(id));
        above.take(parents.len()).any(|id| *id == own)
    };
    parents.keys().partition(|id| is_below(**id))
}

/// Whether a process has a file open; nothing if it cannot be told.
fn holds(id: Id, link: &str) -> Option<bool> {
    let files = fs::read_dir(format!("/proc/{id}/fd")).ok()?;
    let is_it =
        |file: fs::DirEntry| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link);
    Some(files.flatten().any(is_it))
}

/// The parent in a line such as `42 (name) S 1 …`; the name may itself hold `) S 1`.
fn parent(id: Id) -> Option<Id> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}
