//! What this kernel can do for a sandbox.

use std::path::Path;
use std::thread;

use super::seccomp_filter::{self, AllowedCalls};
use super::{Mode, landlock_rules, try_namespaces};

/// What this kernel can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelReport {
    /// The version of Landlock, if it is available and enabled.
    pub landlock: Option<i32>,
    /// Whether calls can be filtered.
    pub seccomp: bool,
    /// Whether commands have namespaces of their own; [`super::try_namespaces`] finds out.
    pub namespaces: bool,
}

/// Finds out by trying, in a thread that is confined and then ends.
pub fn probe() -> KernelReport {
    let trying = thread::Builder::new().name("probe".to_owned()).spawn(|| {
        let landlock = landlock_rules::version();
        let calls = AllowedCalls { internet: true, ..AllowedCalls::default() };
        KernelReport {
            landlock,
            seccomp: seccomp_filter::restrict(calls).is_ok(),
            namespaces: false,
        }
    });
    let tried = trying.ok().and_then(|thread| thread.join().ok());
    tried.unwrap_or(KernelReport { landlock: None, seccomp: false, namespaces: false })
}

/// Finds out all of it, with the executable that has the subcommands of the supervisor and the sandbox.
pub fn report(executable: &Path) -> KernelReport {
    KernelReport { namespaces: try_namespaces(executable).is_ok(), ..probe() }
}

/// Whether files can be opened beneath a folder, as every file tool does. The folder is one that can be
/// opened in a sandbox, too.
pub fn opens_beneath() -> bool {
    crate::confined_fs::directory(Path::new("/proc"), Path::new(".")).is_ok()
}

impl KernelReport {
    /// The parts of the sandbox that are missing, each with its effect on commands; empty if none is.
    pub fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if !self.namespaces {
            missing.push(
                "there are no namespaces for commands: they cannot listen on localhost, and can change \
                 permissions and times only of files that they opened",
            );
        }
        match self.landlock {
            // Namespaces leave nothing to guard that is not the command's own.
            None | Some(_) if self.namespaces => {}
            None => missing.push(
                "this kernel has no Landlock: commands can read and write everything you can",
            ),
            Some(version) => {
                if version < 6 {
                    missing.push(
                        "Landlock is older than version 6: commands can signal processes of yours that \
                         started after them",
                    );
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
        let guards_files = self.landlock.is_some() || self.namespaces;
        match mode {
            Mode::Prefer | Mode::Off => None,
            Mode::Require if !guards_files => {
                Some("this kernel has neither namespaces for users nor Landlock")
            }
            Mode::Require if !self.seccomp => Some("this kernel has no seccomp"),
            Mode::Require => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_requires_a_sandbox_is_refused_without_one() {
        let report = |landlock, seccomp| KernelReport { landlock, seccomp, namespaces: false };
        assert_eq!(report(None, true).forbids(Mode::Prefer), None);
        assert_eq!(report(None, true).forbids(Mode::Off), None);
        assert_eq!(report(Some(1), true).forbids(Mode::Require), None);
        let own = KernelReport { landlock: None, seccomp: true, namespaces: true };
        assert_eq!(own.forbids(Mode::Require), None);
        let why = report(None, true).forbids(Mode::Require);
        assert_eq!(why, Some("this kernel has neither namespaces for users nor Landlock"));
        let why = report(Some(7), false).forbids(Mode::Require);
        assert_eq!(why, Some("this kernel has no seccomp"));
    }

    #[test]
    fn what_is_missing_is_said() {
        let missing = |landlock, seccomp, namespaces| {
            KernelReport { landlock, seccomp, namespaces }.missing().len()
        };
        assert_eq!(missing(Some(6), true, true), 0);
        assert_eq!(missing(None, true, true), 0);
        assert_eq!(missing(Some(6), true, false), 1);
        assert_eq!(missing(Some(5), true, false), 2);
        assert_eq!(missing(Some(2), true, false), 2);
        assert_eq!(missing(None, false, false), 3);
    }

    #[test]
    fn probing_leaves_this_process_alone() {
        let before = probe();
        assert_eq!(probe(), before);
        assert!(std::net::TcpListener::bind("127.0.0.1:0").is_ok());
        assert!(tempfile::tempdir().is_ok());
    }
}
