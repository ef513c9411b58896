//! A place for each command: its policy and its scratch directory.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::policy::User;
use super::{Mode, Policy, Report, Sandbox, probe};

/// Gives commands their places.
#[derive(Debug)]
pub(crate) struct Rooms {
    sandbox: Sandbox,
    user: User,
    kernel: Report,
}

/// The place of one command.
#[derive(Debug)]
pub(crate) struct Room {
    /// The policy, as `confine` reads it.
    pub(crate) policy: String,
    scratch: TempDir,
}

/// Why a command does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the sandbox is required, and {0}")]
    Kernel(&'static str),
    #[error("no scratch directory could be made: {0}")]
    Scratch(#[source] io::Error),
    #[error("a path is not UTF-8, which the sandbox needs: {0}")]
    Path(#[source] serde_json::Error),
}

impl Rooms {
    /// Takes the user's directories from this process's environment.
    pub(crate) fn new(sandbox: Sandbox) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&path).collect();
        let user = User { path, home: std::env::home_dir() };
        Self { sandbox, user, kernel: probe() }
    }

    /// The place of a command in this workspace; none if commands are not confined.
    pub(crate) fn give(&self, workspace: &Path) -> Result<Option<Room>, Refused> {
        if self.sandbox.mode == Mode::Off {
            return Ok(None);
        }
        if let Some(why) = self.kernel.forbids(self.sandbox.mode) {
            return Err(Refused::Kernel(why));
        }
        let private = Permissions::from_mode(0o700);
        let scratch = tempfile::Builder::new().prefix("quintet-").permissions(private).tempdir();
        let scratch = scratch.map_err(Refused::Scratch)?;
        let policy = Policy::new(&self.sandbox, &self.user, [workspace, scratch.path()]);
        let policy = serde_json::to_string(&policy).map_err(Refused::Path)?;
        Ok(Some(Room { policy, scratch }))
    }
}

impl Room {
    /// Where the command may leave things for as long as it runs.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Leaves the scratch directory to the supervisor, which removes it after the command.
    pub(crate) fn hand_over(self) -> PathBuf {
        self.scratch.keep()
    }
}
