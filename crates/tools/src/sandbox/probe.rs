//! What this kernel can do for a sandbox.

use std::path::Path;
use std::thread;

use super::{Mode, calls, files};

/// What this kernel can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The version of Landlock, if it is there and switched on.
    pub landlock: Option<i32>,
    /// Whether calls can be filtered.
    pub seccomp: bool,
}

/// Finds out by trying, in a thread that is confined and then ends.
pub fn probe() -> Report {
    let trying = thread::Builder::new()
        .name("probe".to_owned())
        .spawn(|| Report { landlock: files::version(), seccomp: calls::restrict(true).is_ok() });
    let tried = trying.ok().and_then(|thread| thread.join().ok());
    tried.unwrap_or(Report { landlock: None, seccomp: false })
}

/// Whether files can be opened beneath a folder, as every file tool does.
pub fn opens_beneath() -> bool {
    crate::beneath::directory(Path::new("/"), Path::new(".")).is_ok()
}

impl Report {
    /// What commands can do here that they could not elsewhere; nothing if all is well.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        match self.landlock {
            None => missing
                .push("this kernel has no Landlock: commands can read and write all that you can"),
            Some(version) => {
                if version < 3 {
                    missing.push("Landlock is older than version 3: commands can cut files short");
                }
                if version < 6 {
                    missing.push("Landlock is older than version 6: commands can signal processes");
                }
            }
        }
        if !self.seccomp {
            missing.push("there is no seccomp: commands can use the network and Unix sockets");
        }
        missing
    }

    /// Why nothing may run here in this mode.
    pub(super) fn forbids(&self, mode: Mode) -> Option<&'static str> {
        match (mode, self.landlock, self.seccomp) {
            (Mode::Prefer | Mode::Off, ..) | (Mode::Require, Some(_), true) => None,
            (Mode::Require, None, _) => Some("this kernel has no Landlock"),
            (Mode::Require, Some(_), false) => Some("this kernel has no seccomp"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_requires_a_sandbox_is_refused_without_one() {
        let report = |landlock, seccomp| Report { landlock, seccomp };
        assert_eq!(report(None, true).forbids(Mode::Prefer), None);
        assert_eq!(report(None, true).forbids(Mode::Off), None);
        assert_eq!(report(Some(1), true).forbids(Mode::Require), None);
        let why = report(None, true).forbids(Mode::Require);
        assert_eq!(why, Some("this kernel has no Landlock"));
        let why = report(Some(7), false).forbids(Mode::Require);
        assert_eq!(why, Some("this kernel has no seccomp"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let missing = |landlock, seccomp| Report { landlock, seccomp }.missing().len();
        assert_eq!(missing(Some(6), true), 0);
        assert_eq!(missing(Some(5), true), 1);
        assert_eq!(missing(Some(2), true), 2);
        assert_eq!(missing(None, true), 1);
        assert_eq!(missing(None, false), 2);
    }

    #[test]
    fn probing_leaves_this_process_alone() {
        let before = probe();
        assert_eq!(probe(), before);
        assert!(std::net::TcpListener::bind("127.0.0.1:0").is_ok());
        assert!(tempfile::tempdir().is_ok());
    }
}
