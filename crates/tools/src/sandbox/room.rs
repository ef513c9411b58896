//! A place for each command: its policy and its scratch directory.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::blocked::{self, Blocked};
use super::policy::User;
use super::{Mode, Network, Permissions, Policy, Report, Sandbox, probe, try_namespaces};

/// Gives commands their places.
#[derive(Debug)]
pub(crate) struct Rooms {
    sandbox: Sandbox,
    user: User,
    kernel: Report,
    /// Where package managers keep what they downloaded and built.
    cache: PathBuf,
}

/// The place of one command.
#[derive(Debug)]
pub(crate) struct Room {
    /// The policy, as `confine` reads it.
    pub(crate) policy: String,
    scratch: TempDir,
    /// The network of its namespaces, if it has any.
    pub(crate) network: Option<Network>,
    /// True if the command may use the network of the machine.
    pub(crate) has_network: bool,
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
    pub(crate) fn new(mut sandbox: Sandbox, executable: &Path, cache: PathBuf) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&path).collect();
        let user = User { path, home: std::env::home_dir() };
        let namespaces = sandbox.mode != Mode::Off
            && try_namespaces(executable)
                .inspect_err(|why| tracing::info!(%why, "commands have no namespaces of their own"))
                .is_ok();
        sandbox.extra_write.push(cache.clone());
        Self { sandbox, user, kernel: Report { namespaces, ..probe() }, cache }
    }

    /// What of this the sandbox does not allow anyway.
    pub(crate) fn beyond(&self, asked: &Permissions) -> Result<Permissions, String> {
        asked.beyond(&self.sandbox)
    }

    /// The place of a command in this workspace that has these permissions besides; none if commands
    /// are not confined.
    pub(crate) fn give(
        &self,
        workspace: &Path,
        permissions: &Permissions,
    ) -> Result<Option<Room>, Refused> {
        if self.sandbox.mode == Mode::Off {
            return Ok(None);
        }
        if let Some(why) = self.kernel.forbids(self.sandbox.mode) {
            return Err(Refused::Kernel(why));
        }
        let private = fs::Permissions::from_mode(0o700);
        let scratch = tempfile::Builder::new().prefix("quintet-").permissions(private).tempdir();
        let scratch = scratch.map_err(Refused::Scratch)?;
        // Without it package managers find no cache, and everything else goes on.
        if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(&self.cache) {
            tracing::warn!(%error, "the cache of confined commands could not be made");
        }
        // A root of its own cannot have all of the other one in it.
        let namespaces = self.kernel.namespaces && workspace.components().count() > 1;
        let own = [workspace, scratch.path()];
        let sandbox = permissions.open(&self.sandbox);
        let policy = Policy::new(&sandbox, &self.user, own, namespaces);
        let policy = serde_json::to_string(&policy).map_err(Refused::Path)?;
        let network = if sandbox.network { Network::Shared } else { Network::Private };
        let (network, has_network) = (namespaces.then_some(network), sandbox.network);
        Ok(Some(Room { policy, scratch, network, has_network }))
    }

    /// What the sandbox kept a command from that failed, by what it wrote.
    pub(crate) fn blocked(
        &self,
        workspace: &Path,
        permissions: &Permissions,
        output: &str,
    ) -> Blocked {
        if self.sandbox.mode == Mode::Off {
            return Blocked::default();
        }
        let (sandbox, own) = (permissions.open(&self.sandbox), [workspace, workspace]);
        let policy = Policy::new(&sandbox, &self.user, own, self.kernel.namespaces);
        blocked::blocked(&policy, &self.sandbox, output)
    }
}

impl Room {
    /// The scratch directory.
    pub(crate) fn scratch(&self) -> &Path {
        self.scratch.path()
    }

    /// Where the command finds it.
    pub(crate) fn temporary(&self) -> &Path {
        if self.network.is_some() { Path::new("/tmp") } else { self.scratch() }
    }

    /// Leaves the scratch directory to the supervisor, which removes it after the command.
    pub(crate) fn hand_over(self) -> PathBuf {
        self.scratch.keep()
    }
}
