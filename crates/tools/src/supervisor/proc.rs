//! The process table, as far as the supervisor needs it.

use std::{fs, io};

use rustix::process::{Pid, getpid};

/// The children of this process, zombies included.
pub(super) fn children() -> io::Result<Vec<Pid>> {
    let me = getpid().as_raw_pid();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // A process that ended since the directory was read was reaped by somebody else, so it
        // was not a child of this one.
        if fs::read(format!("/proc/{pid}/stat")).is_ok_and(|stat| parent(&stat) == Some(me)) {
            found.extend(Pid::from_raw(pid));
        }
    }
    Ok(found)
}

/// The parent in a line such as `42 (name) S 1 …`; the name may itself hold `) S 1`.
fn parent(stat: &[u8]) -> Option<i32> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_a_parent() {
        assert_eq!(parent(b"42 (sh) S 7 42 42"), Some(7));
        assert_eq!(parent(b"42 (x) S 1 (y) Z 7 42"), Some(7));
        assert_eq!(parent(b"42 (\xff\xfe) S 7"), Some(7));
        assert_eq!(parent(b"42 (sh"), None);
        assert_eq!(parent(b""), None);
    }
}
