//! Identifies commands of the agent: the descendants of this process.
//!
//! A supervisor adopts the orphans of its command, so that all processes of a command stay below this process.

use std::collections::{HashMap, HashSet};
use std::fs;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, getpid, waitid};

/// The most scans of the process tree while it keeps changing.
const SCAN_TRIES_LIMIT: usize = 3;

/// A process id.
type Id = i32;

/// True if this process has any child; without children there are no commands.
fn has_children() -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    waitid(WaitId::All, options).err() != Some(Errno::CHILD)
}

/// True if a process is a descendant of this one. A process that has ended may be one, so it counts.
pub(in super::super) fn is_command(process: Option<Id>) -> bool {
    if !has_children() {
        return false;
    }
    let own = getpid().as_raw_pid();
    let mut process = process.filter(|process| *process > 0);
    while let Some(id) = process {
        match parent(id) {
            Some(parent) if parent == own => return true,
            Some(0) => return false,
            parent => process = parent,
        }
    }
    true
}

/// True if a socket belongs to a process that is not a command of the agent. While commands start and end,
/// the socket must be found in another process.
pub(super) fn is_held_by_others(socket: u32) -> bool {
    if !has_children() {
        return true;
    }
    let link = format!("socket:[{socket}]");
    let mut seen = HashSet::new();
    for scan in 0..SCAN_TRIES_LIMIT {
        let (commands, others) = processes();
        let held: Vec<Option<bool>> = commands.iter().map(|id| has_file_open(*id, &link)).collect();
        if held.contains(&Some(true)) {
            return false;
        }
        if scan == 0 && others.iter().any(|id| has_file_open(*id, &link) == Some(true)) {
            return true;
        }
        let new = commands.into_iter().filter(|id| seen.insert(*id)).count();
        // The owner may be hidden from this user; all commands were checked.
        if scan > 0 && new == 0 && !held.contains(&None) {
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
    let is_descendant = |id: Id| {
        let above = std::iter::successors(parents.get(&id), |id| parents.get(id));
        above.take(parents.len()).any(|id| *id == own)
    };
    parents.keys().partition(|id| is_descendant(**id))
}

/// True if a process has a file open; `None` if that is not known.
fn has_file_open(id: Id, link: &str) -> Option<bool> {
    let files = fs::read_dir(format!("/proc/{id}/fd")).ok()?;
    let is_it =
        |file: fs::DirEntry| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == link);
    Some(files.flatten().any(is_it))
}

/// The parent in a line such as `42 (name) S 1 …`; the name itself may contain `) S 1`.
fn parent(id: Id) -> Option<Id> {
    let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}
