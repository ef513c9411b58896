//! `quintet worker`: takes runs from a control plane and executes each as a session of a daemon.
//!
//! The worker is a client of the computer-use protocol: the daemon calls models, the worker runs tools in its
//! folder and sandbox. All state is in the control plane and in the daemon, so a worker that is killed and
//! restarted with the same id continues its runs.

mod assignment;
mod call;
mod gate;
mod job;
mod relay;
mod socket;
mod toolkit;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::assemble::toolbox;
use crate::cli::Worker;
use crate::options::Options;
use crate::runs::api::{Api, ApiError};
use crate::{attach, options, runs, senses, telemetry};

use assignment::Assignment;
use gate::{Change, Gate};
use job::{Ended, Job};
use toolkit::Toolkit;

/// Maximum number of concurrent runs: a daemon executes four queries of a user at a time.
pub(crate) const JOBS_LIMIT: u64 = 4;
/// The value of `--daemon` for the daemon that serves the data directory.
const OWN_DAEMON: &str = "own";
/// Maximum number of recorded command ids.
const APPLIED_LIMIT: usize = 4096;

/// `quintet worker`.
pub(crate) fn main(arguments: Worker) -> Result<()> {
    let filter = options::environment().into_iter().find(|(name, _)| name == "QUINTET_LOG");
    let flags = &arguments.plane.flags;
    telemetry::start(flags.log_format, filter.as_ref().map(|(_, value)| value.as_str()));
    let mut options = options::read_closed(flags)?;
    // Memory belongs to a daemon's own workspaces.
    options.memory = None;
    let api = runs::connect(&arguments.plane)?;
    let folder = arguments.dir.clone().unwrap_or_else(|| PathBuf::from("."));
    let folder = folder.canonicalize().with_context(|| format!("--dir {}", folder.display()))?;
    if !folder.is_dir() {
        bail!("--dir {}: not a folder", folder.display());
    }
    let daemon = socket::address(&daemon_url(&arguments, &options, &api)?)?;
    let id = arguments.id.clone().unwrap_or_else(default_id);
    let identity = Identity {
        user: arguments.user.clone().unwrap_or_else(|| id.clone()),
        workspace: arguments.workspace.clone(),
        id,
    };
    let toolkit = Toolkit::new(toolbox(&options, &senses::build(&options), None), folder);
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let every = Duration::from_millis(arguments.interval_ms.max(10));
    let context = WorkerContext { api, daemon, identity, toolkit: Arc::new(toolkit) };
    threads.block_on(run(Arc::new(context), arguments.jobs, every))
}

/// The daemon that executes the runs. That of the data directory is started if none serves it.
fn daemon_url(arguments: &Worker, options: &Options, api: &Api) -> Result<String> {
    let is_own = match (&arguments.daemon, &arguments.plane.url) {
        (Some(daemon), _) => daemon == OWN_DAEMON,
        (None, url) => url.is_none(),
    };
    if !is_own {
        return Ok(arguments.daemon.clone().unwrap_or_else(|| api.url().to_owned()));
    }
    let address = runs::own_address(options)?;
    attach::ensure_listening(&arguments.plane.flags, &options.data_dir, address)?;
    Ok(format!("http://{address}"))
}

fn default_id() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    let host: String = host.trim().chars().map(plain).collect();
    format!("worker-{host}")
}

/// The names of the worker.
#[derive(Clone, Debug)]
struct Identity {
    id: String,
    user: String,
    workspace: String,
}

/// The data that all runs of the worker share.
struct WorkerContext {
    api: Api,
    /// The WebSocket address of the daemon that executes the runs.
    daemon: String,
    identity: Identity,
    toolkit: Arc<Toolkit>,
}

/// Takes runs until a signal arrives.
async fn run(context: Arc<WorkerContext>, jobs: u64, every: Duration) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let Identity { id, workspace, .. } = &context.identity;
    tracing::info!(worker = id, workspace, url = context.api.url(), "taking runs");
    let mut active = ActiveRuns::new(context, usize::try_from(jobs)?);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => active.poll().await?,
            Some(ended) = active.tasks.join_next() => active.ended(ended),
            _ = tokio::signal::ctrl_c() => break,
            _ = terminate.recv() => break,
        }
    }
    tracing::info!(runs = active.taken.len(), "stopping; a restarted worker continues these runs");
    Ok(())
}

/// The runs of the worker.
struct ActiveRuns {
    context: Arc<WorkerContext>,
    jobs: usize,
    tasks: JoinSet<(String, Ended)>,
    /// The current assignment and the gate of each run.
    taken: HashMap<String, (u64, Arc<Gate>)>,
    /// Executed commands, so that none is executed twice.
    applied: HashSet<String>,
    /// True if the control plane may have assigned runs in a lost answer.
    may_have_unknown_runs: bool,
}

impl ActiveRuns {
    fn new(context: Arc<WorkerContext>, jobs: usize) -> Self {
        let (tasks, taken, applied) = Default::default();
        Self { context, jobs, tasks, taken, applied, may_have_unknown_runs: true }
    }

    /// Sends one heartbeat. Fails only if the control plane refuses this worker permanently.
    async fn poll(&mut self) -> Result<()> {
        match self.heartbeat().await {
            Ok(()) => Ok(()),
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "the control plane does not answer; retrying the heartbeat");
                self.may_have_unknown_runs = true;
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn heartbeat(&mut self) -> Result<(), ApiError> {
        if self.may_have_unknown_runs {
            self.catch_up().await?;
        }
        let Identity { id, user, workspace } = &self.context.identity;
        let status = match self.taken.len() {
            0 => "ready",
            taken if taken < self.jobs => "running",
            _ => "busy",
        };
        let polled = self
            .context
            .api
            .heartbeat(json!({
                "workspace_id": workspace, "worker_id": id, "vm_id": format!("vm-{id}"),
                "user_id": user, "session_id": user, "status": status,
                "metadata": { "client": concat!("quintet/", env!("CARGO_PKG_VERSION")) },
            }))
            .await?;
        if let Some(assignment) = Assignment::from_heartbeat(&polled["assigned_run"]) {
            self.begin(assignment);
        }
        for command in polled["control_commands"].as_array().into_iter().flatten() {
            self.command(command).await?;
        }
        Ok(())
    }

    /// Continues the runs that the control plane has assigned to this worker.
    async fn catch_up(&mut self) -> Result<(), ApiError> {
        let id = self.context.identity.id.clone();
        let query = [("worker_id", id.as_str()), ("status", "active"), ("limit", "200")];
        let listed = match self.context.api.list(&query).await {
            // This control plane cannot list runs.
            Err(ApiError::Refused { status: 404 | 405, .. }) => json!({}),
            listed => listed?,
        };
        self.may_have_unknown_runs = false;
        for view in listed["runs"].as_array().into_iter().flatten() {
            if let Some(assignment) = Assignment::resumed(view) {
                self.begin(assignment);
            }
        }
        Ok(())
    }

    fn begin(&mut self, assignment: Assignment) {
        let run = assignment.run.clone();
        if let Some((number, _)) = self.taken.get(&run) {
            // The run was lost and assigned again: it starts once the old assignment has ended.
            self.may_have_unknown_runs |= *number < assignment.number;
            return;
        }
        tracing::info!(run, assignment = assignment.number, resumed = assignment.resumed, "begins");
        let gate = Arc::new(Gate::new(assignment.paused, assignment.mode));
        self.taken.insert(run.clone(), (assignment.number, Arc::clone(&gate)));
        let job = Job::new(Arc::clone(&self.context), assignment, gate);
        self.tasks.spawn(async move { (run, job.execute().await) });
    }

    fn ended(&mut self, ended: Result<(String, Ended), tokio::task::JoinError>) {
        match ended {
            Ok((run, ended)) => {
                tracing::info!(run, ?ended, "is over");
                self.taken.remove(&run);
            }
            Err(error) => {
                // It is unknown which run that was; the control plane is asked which are left.
                tracing::error!(%error, "the task of a run panicked");
                self.may_have_unknown_runs = true;
            }
        }
    }

    /// Stops the turn of a run that this process does not have.
    async fn stop_left_behind(&self, run: &str) -> Result<(), ApiError> {
        let view = match self.context.api.view(run).await {
            Err(error) if !error.is_transient() => return Ok(()),
            view => view?,
        };
        if let Some(assignment) = Assignment::resumed(&view) {
            let gate = Arc::new(Gate::new(true, assignment.mode));
            Job::new(Arc::clone(&self.context), assignment, gate).abandon().await;
        }
        Ok(())
    }

    /// Applies a command once and confirms it.
    async fn command(&mut self, command: &Value) -> Result<(), ApiError> {
        let text = |name: &str| command[name].as_str().unwrap_or_default();
        let (run, id) = (text("run_id"), text("command_id"));
        if !self.applied.contains(id) {
            let change = Change::named(text("action"), text("control_mode"));
            match (self.taken.get(run), change) {
                (Some((_, gate)), Some(change)) => gate.apply(change),
                // An earlier process of this worker may have left a turn running.
                (None, Some(Change::Stop)) => self.stop_left_behind(run).await?,
                (None, _) | (_, None) => {}
            }
            tracing::info!(run, action = text("action"), "control");
            if self.applied.len() >= APPLIED_LIMIT {
                self.applied.clear();
            }
            self.applied.insert(id.to_owned());
        }
        let payload = json!({ "command_id": id, "action": text("action") });
        let body = json!({
            "event_type": "run-control-applied", "source": "worker", "payload": payload,
            "worker_id": self.context.identity.id,
        });
        match self.context.api.report(run, body).await {
            Err(error) if error.is_transient() => Err(error),
            Err(error) => {
                tracing::warn!(run, %error, "could not report the effect of a command");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }
}
