//! Starts commands, in sandboxes that were prepared while nothing ran.
//!
//! To put a sandbox together takes far longer than to run a short command in it. So once a command has
//! run, a sandbox like its own is prepared for the next, which waits in there for its command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use super::supervised::Supervised;
use super::{Environment, Job, RunError, environment};
use crate::sandbox::{self, Confinement, Refused};
use crate::supervisor::{self, control};

/// How many sandboxes wait for a command.
const WAITING_LIMIT: usize = 2;

/// How long a prepared sandbox is used; its supervisor gives up a little later.
const WAITING_TIMEOUT: Duration = control::PREPARED_TIMEOUT.saturating_sub(Duration::from_secs(30));

/// Starts commands under the supervisor.
#[derive(Debug)]
pub(super) struct Launcher {
    /// The executable that has the supervisor's subcommand.
    supervisor: PathBuf,
    environment: Environment,
    /// Where confined commands keep what they download and build.
    cache: PathBuf,
    shell: [&'static str; 2],
    /// The oldest first.
    waiting: Mutex<Vec<Waiting>>,
}

/// A sandbox that waits for a command.
#[derive(Debug)]
struct Waiting {
    confinement: Confinement,
    supervised: Supervised,
    since: Instant,
}

impl Launcher {
    pub(super) fn new(supervisor: PathBuf, cache: PathBuf) -> Self {
        let bash = Path::new("/bin/bash").exists();
        // Not a login shell: a profile is slow, may fail, and is the user's, not the agent's.
        let shell = if bash { ["/bin/bash", "-c"] } else { ["/bin/sh", "-c"] };
        let environment = Environment::of_this_process();
        Self { supervisor, environment, cache, shell, waiting: Mutex::default() }
    }

    /// Starts a command without a sandbox.
    pub(super) fn unconfined(&self, job: &Job<'_>) -> Result<Supervised, RunError> {
        let mut command = self.supervise();
        command.arg("--").args(self.shell).arg(job.command).current_dir(job.workspace);
        Supervised::start(command, None).map_err(RunError::Start)
    }

    /// Starts the executable itself.
    pub(super) fn own(&self, args: Vec<OsString>) -> Result<Supervised, RunError> {
        let mut command = self.supervise();
        command.arg("--").arg(&self.supervisor).args(args).current_dir("/");
        Supervised::start(command, None).map_err(RunError::Start)
    }

    /// Starts a command in a sandbox, which may have been prepared.
    pub(super) async fn start(
        &self,
        confinement: &Confinement,
        job: &Job<'_>,
    ) -> Result<Supervised, RunError> {
        let mut supervised = match self.take(confinement) {
            Some(waiting) => waiting,
            None => self.prepare(confinement)?,
        };
        supervised.send(job.command).await.map_err(RunError::Start)?;
        Ok(supervised)
    }

    /// Prepares a sandbox for the next command that is confined like this one.
    pub(super) fn prepare_next(self: Arc<Self>, confinement: Confinement) {
        spawn_blocking(move || {
            let Ok(supervised) = self.prepare(&confinement) else { return };
            let waiting = Waiting { confinement, supervised, since: Instant::now() };
            let mut all = self.waiting();
            all.push(waiting);
            let excess = all.len().saturating_sub(WAITING_LIMIT);
            let dropped: Vec<_> = all.drain(..excess).collect();
            drop(all);
            drop(dropped);
        });
    }

    /// A sandbox like this one that waits for a command.
    fn take(&self, confinement: &Confinement) -> Option<Supervised> {
        let mut all = self.waiting();
        all.retain_mut(|it| it.since.elapsed() < WAITING_TIMEOUT && it.supervised.is_waiting());
        let found = all.iter().position(|it| it.confinement == *confinement)?;
        Some(all.remove(found).supervised)
    }

    /// Starts a supervisor that puts the sandbox together and waits for a command.
    fn prepare(&self, confinement: &Confinement) -> Result<Supervised, RunError> {
        let mut command = self.supervise();
        let (policy, scratch) = confine(&mut command, confinement)?;
        command.envs(environment::confined(&self.cache, confinement.has_network()));
        command.arg("--await-command").arg("--").arg(&self.supervisor);
        command.args([sandbox::SUBCOMMAND, "--await-command", &policy, "--"]).args(self.shell);
        // A waiting process must not keep a folder busy.
        command.current_dir("/");
        let own = scratch.path().to_owned();
        let supervised = Supervised::start(command, Some(own)).map_err(RunError::Start)?;
        // Even if the daemon dies the supervisor will be there to remove it.
        let _path = scratch.keep();
        Ok(supervised)
    }

    /// The supervisor, to be followed by its options and a command.
    #[expect(clippy::disallowed_methods, reason = "this starts the supervisor itself")]
    fn supervise(&self) -> Command {
        let mut command = Command::new(&self.supervisor);
        command.env_clear().envs(self.environment.iter()).arg(supervisor::SUBCOMMAND);
        command
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Has a supervisor prepare a sandbox. Gives the policy for `confine`, and the scratch directory, which the supervisor
/// removes.
///
/// # Errors
/// If there is no scratch directory, or a path that cannot be passed on.
pub(crate) fn confine(
    supervisor: &mut Command,
    confinement: &Confinement,
) -> Result<(String, TempDir), Refused> {
    let (policy, scratch) = confinement.with_scratch()?;
    supervisor.args(["--confined", "--scratch"]).arg(scratch.path());
    let temporary = if confinement.network.is_some() { Path::new("/tmp") } else { scratch.path() };
    supervisor.env("TMPDIR", temporary);
    if let Some(network) = confinement.network {
        supervisor.args(["--namespaces", network.word()]);
    }
    Ok((policy, scratch))
}
