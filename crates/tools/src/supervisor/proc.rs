//! The process table, as far as the supervisor needs it.

use std::{fs, io};

use rustix::process::{Pid, getpid};

/// The children of this process, zombies included.
pub(super) fn children() -> io::Result<Vec<Pid>> {
    let me = getpid().as_raw_pid();
    // A process that ended since the directory was read was reaped by another process, so it was not a child of
    // this one.
    let own = processes()?.into_iter().filter(|process| process.parent == me);
    Ok(own.filter_map(|process| Pid::from_raw(process.pid)).collect())
}

/// The processes that descend from another, but for zombies.
pub(super) fn descendants(ancestor: Pid) -> io::Result<Vec<Pid>> {
    let all = processes()?;
    let mut found = vec![ancestor.as_raw_pid()];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(all.iter().filter(|it| it.parent == parent).map(|it| it.pid));
        next += 1;
    }
    let is_zombie = |pid: &i32| all.iter().any(|it| it.pid == *pid && it.is_zombie);
    let alive = found.into_iter().skip(1).filter(|pid| !is_zombie(pid));
    Ok(alive.filter_map(Pid::from_raw).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    is_zombie: bool,
}

fn processes() -> io::Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        found.extend(fs::read(format!("/proc/{pid}/stat")).ok().and_then(|it| parse(pid, &it)));
    }
    Ok(found)
}

/// Reads a line such as `42 (name) S 1 …`; the name may itself hold `) S 1`.
fn parse(pid: i32, stat: &[u8]) -> Option<Process> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    let mut words = rest.split_ascii_whitespace();
    let is_zombie = words.next()? == "Z";
    Some(Process { pid, parent: words.next()?.parse().ok()?, is_zombie })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_parent() {
        let parent = |stat| parse(42, stat).map(|it| (it.parent, it.is_zombie));
        assert_eq!(parent(b"42 (sh) S 7 42 42"), Some((7, false)));
        assert_eq!(parent(b"42 (x) S 1 (y) Z 7 42"), Some((7, true)));
        assert_eq!(parent(b"42 (\xff\xfe) S 7"), Some((7, false)));
        assert_eq!(parent(b"42 (sh"), None);
        assert_eq!(parent(b""), None);
    }
}
