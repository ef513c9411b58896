//! What confines one command: its policy, the network it gets, and its scratch directory.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::blocked::{self, Blocked};
use super::policy::User;
use super::{
    KernelReport, Mode, Network, Permissions, Policy, Sandbox, probe, root_fs, scratch,
    try_namespaces,
};

/// Plans the confinement of commands.
#[derive(Debug)]
pub(crate) struct Confiner {
    sandbox: Sandbox,
    user: User,
    kernel: KernelReport,
    /// Where package managers keep what they downloaded and built, if commands share that.
    cache: Option<PathBuf>,
}

/// What confines a command. Two that are equal can be exchanged: a sandbox that was prepared for one
/// serves the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Confinement {
    policy: Policy,
    /// What is at the paths that a new root binds. A path that was replaced since leads elsewhere.
    bound: Vec<Option<(u64, u64)>>,
    /// The network of its namespaces, if it has any.
    pub(crate) network: Option<Network>,
}

/// Why a command does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "the sandbox is required, and {0} (`quintet doctor` says how to enable it; `sandbox.mode = \"prefer\"` runs commands without it)"
    )]
    Kernel(&'static str),
    #[error("no scratch directory could be made: {0}")]
    Scratch(#[source] io::Error),
    #[error("a path is not UTF-8, which the sandbox needs: {0}")]
    Path(#[source] serde_json::Error),
}

impl Confiner {
    /// Takes the user's directories from this process's environment.
    pub(crate) fn new(mut sandbox: Sandbox, executable: &Path, cache: Option<PathBuf>) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::split_paths(&path).collect();
        let user = User { path, home: std::env::home_dir() };
        let namespaces = sandbox.mode != Mode::Off
            && try_namespaces(executable)
                .inspect_err(|why| tracing::info!(%why, "commands have no namespaces of their own"))
                .is_ok();
        if sandbox.mode != Mode::Off {
            scratch::remove_abandoned();
        }
        sandbox.extra_write.extend(cache.clone());
        Self { sandbox, user, kernel: KernelReport { namespaces, ..probe() }, cache }
    }

    /// The requested permissions that the sandbox does not grant already.
    pub(crate) fn beyond(&self, asked: &Permissions) -> Result<Permissions, String> {
        let asked = Permissions {
            attributes: asked.attributes && !self.kernel.namespaces,
            ..asked.clone()
        };
        asked.beyond(&self.sandbox)
    }

    /// The confinement of a command in this workspace with these additional permissions; `None` if commands are not
    /// confined.
    ///
    /// # Errors
    /// If the sandbox is required and this kernel has none.
    pub(crate) fn plan(
        &self,
        workspace: &Path,
        permissions: &Permissions,
    ) -> Result<Option<Confinement>, Refused> {
        if self.sandbox.mode == Mode::Off {
            return Ok(None);
        }
        if let Some(why) = self.kernel.forbids(self.sandbox.mode) {
            return Err(Refused::Kernel(why));
        }
        // Without it package managers have no cache; everything else works.
        if let Some(cache) = &self.cache
            && let Err(error) = private_folder(cache)
        {
            tracing::warn!(%error, "the cache of confined commands could not be made");
        }
        // A root of its own cannot have all of the other one in it.
        let namespaces = self.kernel.namespaces && workspace.components().count() > 1;
        let sandbox = permissions.open(&self.sandbox);
        let mut policy = Policy::new(&sandbox, &self.user, workspace, namespaces);
        policy.attributes |= permissions.attributes;
        let secrets = root_fs::SECRETS.iter().map(Path::new);
        let places = policy.read.iter().chain(&policy.write).map(PathBuf::as_path).chain(secrets);
        let bound = places.map(identity).collect();
        let network = if sandbox.network { Network::Shared } else { Network::Private };
        Ok(Some(Confinement { policy, bound, network: namespaces.then_some(network) }))
    }

    /// What the sandbox blocked in a failed command, from its output. `keys` is the section of the configuration
    /// that would have allowed it.
    pub(crate) fn blocked(
        &self,
        workspace: &Path,
        permissions: &Permissions,
        keys: &str,
        output: &str,
    ) -> Blocked {
        if self.sandbox.mode == Mode::Off {
            return Blocked::default();
        }
        let sandbox = permissions.open(&self.sandbox);
        let mut policy = Policy::new(&sandbox, &self.user, workspace, self.kernel.namespaces);
        policy.attributes |= permissions.attributes;
        blocked::blocked(&policy, &self.sandbox, keys, output)
    }
}

impl Confinement {
    /// True if the command may use the network of the machine.
    pub(crate) fn has_network(&self) -> bool {
        self.policy.network
    }

    /// Makes a scratch directory, and writes the policy with it as `confine` reads it.
    ///
    /// # Errors
    /// If the directory cannot be made, or a path cannot be written as text.
    pub(crate) fn with_scratch(&self) -> Result<(String, TempDir), Refused> {
        let scratch = scratch::create().map_err(Refused::Scratch)?;
        let mut policy = self.policy.clone();
        policy.scratch = scratch.path().to_owned();
        policy.write.push(scratch.path().to_owned());
        let policy = serde_json::to_string(&policy).map_err(Refused::Path)?;
        Ok((policy, scratch))
    }
}

/// Makes a folder that only this user can enter, unless it is there.
///
/// # Errors
/// If the folder cannot be made.
pub(crate) fn private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The device and number of what is at a path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_kernel_for_it_nothing_runs_in_a_required_sandbox() {
        let plan = |mode| {
            let kernel = KernelReport { landlock: None, seccomp: true, namespaces: false };
            let user = User { path: Vec::new(), home: None };
            let sandbox = Sandbox { mode, ..Sandbox::default() };
            let confiner = Confiner { sandbox, user, kernel, cache: None };
            confiner.plan(Path::new("/srv/x"), &Permissions::default())
        };
        let refused = plan(Mode::Require).unwrap_err().to_string();
        assert!(refused.contains("neither namespaces for users nor Landlock"), "{refused}");
        assert!(plan(Mode::Prefer).unwrap().is_some());
        assert!(plan(Mode::Off).unwrap().is_none());
    }
}
