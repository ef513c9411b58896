//! The control plane of runs: loads a run, lets the kernel decide, appends, and replies once that
//! is durable.
//!
//! Commands for one run are serialized here. If another daemon on the same store was faster, the sequence
//! number of the append conflicts, and the command is decided again. Only runs in use are held in memory,
//! at most a few hundred small ones.

mod live;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use quintet_kernel::Time;
use quintet_kernel::event::Seq;
use quintet_kernel::id::RunId;
use quintet_kernel::port::{
    BoxFuture, Clock, Page, RunEntry, RunError, RunFilter, RunJournal, RunPoll, RunReceipt, Runs,
    StorageError,
};
use quintet_kernel::run::{
    ControlAction, NewRun, RunCommand, RunEvent, RunRecord, RunRefusal, RunState, Worker, begin,
    handle,
};
use tokio::sync::Semaphore;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use live::LiveRuns;

/// How often a command is decided again after a conflict with another daemon.
const CONFLICT_RETRIES: usize = 16;
/// Commands of one sweep that run concurrently; they share commits.
const SWEEP_CONCURRENCY: usize = 64;
/// Concurrent assignments; bounds how far each searches the queue.
const ASSIGNMENT_CONCURRENCY: usize = 64;
/// Maximum number of leases that one sweep ends.
const EXPIRY_PAGE: usize = 256;
/// A heartbeat is stored again after this fraction of a lease.
const RENEWALS_PER_LEASE: u32 = 4;

/// How often leases are checked.
const MIN_SWEEP_INTERVAL: Duration = Duration::from_millis(100);
const MAX_SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// The status of a worker without a run.
const READY_STATUS: &str = "ready";

/// Settings of the control plane.
#[derive(Clone, Copy, Debug)]
pub struct RunSettings {
    /// Maximum number of active runs of a workspace.
    pub most_active: usize,
    /// Maximum time without a heartbeat before a worker loses its runs.
    pub lease: Duration,
    /// Number of lost workers after which a run fails.
    pub most_losses: u32,
}

/// The control plane of runs. Clones share their state.
#[derive(Clone)]
pub struct RunService {
    inner: Arc<Inner>,
}

struct Inner {
    journal: Arc<dyn RunJournal>,
    clock: Arc<dyn Clock>,
    settings: RunSettings,
    live: LiveRuns,
    /// Runs that are being assigned.
    assigning: Mutex<HashSet<RunId>>,
    assignments: Semaphore,
    watch: Mutex<Watch>,
}

/// The time since which heartbeats could be received.
struct Watch {
    since: Time,
    last_sweep: Time,
}

impl fmt::Debug for RunService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunService").field("settings", &self.inner.settings).finish_non_exhaustive()
    }
}

impl RunService {
    /// A control plane on a store. Workers that already have runs get a full lease to send a heartbeat.
    pub fn new(journal: Arc<dyn RunJournal>, clock: Arc<dyn Clock>, settings: RunSettings) -> Self {
        let now = clock.now();
        let watch = Mutex::new(Watch { since: now, last_sweep: now });
        let assignments = Semaphore::new(ASSIGNMENT_CONCURRENCY);
        let (live, assigning) = Default::default();
        let inner = Inner { journal, clock, settings, live, assigning, assignments, watch };
        Self { inner: Arc::new(inner) }
    }

    /// Takes runs from silent workers until the daemon shuts down.
    pub async fn watch(self, stop: CancellationToken) {
        let every = (self.inner.settings.lease / RENEWALS_PER_LEASE)
            .clamp(MIN_SWEEP_INTERVAL, MAX_SWEEP_INTERVAL);
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
            }
            match self.expire().await {
                Ok(0) => {}
                Ok(lost) => tracing::warn!(runs = lost, "workers were lost: no heartbeats"),
                Err(error) => tracing::error!(%error, "could not check the leases of runs"),
            }
        }
    }

    /// Takes runs from workers that were silent for too long; returns the number of runs.
    pub async fn expire(&self) -> Result<usize, RunError> {
        let inner = &*self.inner;
        let now = inner.clock.now();
        let RunSettings { lease, most_losses, .. } = inner.settings;
        if now < inner.listening_since(now).after(lease) {
            return Ok(0);
        }
        let silent = inner.journal.silent(now.before(lease), EXPIRY_PAGE).await?;
        let expired = stream::iter(silent)
            .map(|entry| async move {
                let heartbeat = entry.heartbeat.unwrap_or(now);
                let expire = RunCommand::Expire { heartbeat, grace: lease, most_losses };
                let receipt = inner.submit(&entry.run.id, expire).await?;
                Ok::<_, RunError>(usize::from(matches!(
                    receipt.latest.event,
                    RunEvent::Lost { .. }
                )))
            })
            .buffer_unordered(SWEEP_CONCURRENCY);
        let expired: Vec<Result<usize, RunError>> = expired.collect().await;
        expired.into_iter().sum()
    }
}

impl Inner {
    /// The time since when workers could reach this daemon. A gap between sweeps means that the machine slept:
    /// workers then get a full lease again.
    fn listening_since(&self, now: Time) -> Time {
        let mut watch = lock(&self.watch);
        let gap = (self.settings.lease / 2).max(MAX_SWEEP_INTERVAL);
        if now.since(watch.last_sweep) > gap {
            watch.since = now;
        }
        watch.last_sweep = now;
        watch.since
    }

    async fn load(&self, run: &RunId) -> Result<RunEntry, RunError> {
        self.journal.run(run).await?.ok_or_else(|| RunError::NotFound(run.clone()))
    }

    async fn create(&self, new: NewRun) -> Result<RunReceipt, RunError> {
        let stamp = self.clock.stamp();
        let (id, workspace) = (stamp.uuid::<RunId>(), new.workspace.clone());
        let latest = RunRecord { seq: 1, at: stamp.at, event: begin(&id, new) };
        let run = RunState::begun(id, &latest).expect("the first event begins a run");
        let limit = self.settings.most_active;
        if self.journal.begin(run.clone(), latest.clone(), limit).await? {
            Ok(RunReceipt { entry: RunEntry { run, heartbeat: None }, latest })
        } else {
            Err(RunRefusal::TooManyRuns { workspace, limit }.into())
        }
    }

    async fn submit(&self, id: &RunId, command: RunCommand) -> Result<RunReceipt, RunError> {
        let slot = self.live.slot(id);
        let submitted = {
            let mut cached = slot.lock().await;
            self.decide(id, &mut cached, command).await
        };
        self.live.release(id, slot);
        submitted
    }

    async fn decide(
        &self,
        id: &RunId,
        cached: &mut Option<RunEntry>,
        command: RunCommand,
    ) -> Result<RunReceipt, RunError> {
        for _ in 0..CONFLICT_RETRIES {
            let mut entry = match cached.take() {
                Some(entry) => entry,
                None => self.load(id).await?,
            };
            let before = entry.run.progress.head;
            match handle(&mut entry.run, command.clone(), &self.clock.stamp()) {
                Err(refusal) => {
                    // The cached state may be outdated: another daemon may have changed the run.
                    if self.journal.run(id).await?.is_some_and(|now| now.run != entry.run) {
                        continue;
                    }
                    live::keep(cached, entry);
                    return Err(refusal.into());
                }
                Ok(None) => {
                    let latest = self.latest(&entry).await?;
                    live::keep(cached, entry.clone());
                    return Ok(RunReceipt { entry, latest });
                }
                Ok(Some(latest)) => {
                    let progress = entry.run.progress.clone();
                    match self.journal.append(id, latest.clone(), progress).await {
                        Ok(()) => {
                            entry.heartbeat = entry.heartbeat.max(entry.run.progress.heartbeat);
                            live::keep(cached, entry.clone());
                            return Ok(RunReceipt { entry, latest });
                        }
                        Err(StorageError::Conflict(head)) => {
                            tracing::debug!(run = %id, before, head, "another daemon changed the run; retrying");
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        Err(StorageError::Unavailable("the run changes too fast".into()).into())
    }

    /// The last event of a run.
    async fn latest(&self, entry: &RunEntry) -> Result<RunRecord, RunError> {
        let (id, head) = (&entry.run.id, entry.run.progress.head);
        let page = Page { events: 1, bytes: usize::MAX };
        let found = self.journal.events(id, head.saturating_sub(1), page).await?.pop();
        let missing = || StorageError::Damaged(format!("run {id} has no event {head}"));
        Ok(found.ok_or_else(missing)?)
    }

    async fn poll(&self, workspace: &str, worker: Worker) -> Result<RunPoll, RunError> {
        let now = self.clock.now();
        let mine = self.journal.of_worker(&worker.id).await?;
        let renewal = self.settings.lease / RENEWALS_PER_LEASE;
        if mine.heartbeat.is_some_and(|oldest| oldest.after(renewal) <= now) {
            // A worker that reports `ready` did not receive a run that it has not started.
            let all = worker.status != READY_STATUS;
            self.journal.renew(&worker.id, now, all).await?;
        }
        let assigned =
            if worker.is_ready() { self.assign(workspace, &worker).await? } else { None };
        let commands = |entry: &RunEntry| -> Vec<_> {
            let controls = entry.run.progress.controls.iter();
            controls.map(|control| (entry.run.id.clone(), control.clone())).collect()
        };
        let controls = mine.commanded.iter().chain(&assigned).flat_map(commands).collect();
        Ok(RunPoll { assigned, controls })
    }

    /// Assigns the oldest waiting run that is not being assigned already.
    async fn assign(&self, workspace: &str, worker: &Worker) -> Result<Option<RunEntry>, RunError> {
        let closed = |_| StorageError::Unavailable("the daemon is shutting down".into());
        let _permit = self.assignments.acquire().await.map_err(closed)?;
        for _ in 0..CONFLICT_RETRIES {
            let limit = lock(&self.assigning).len() + 1;
            let waiting = self.journal.waiting(workspace, limit).await?;
            if waiting.is_empty() {
                return Ok(None);
            }
            let Some(claim) = AssignmentClaim::first_of(&self.assigning, &waiting) else {
                continue;
            };
            let assign = RunCommand::Assign { worker: worker.clone() };
            match self.submit(&claim.run, assign).await {
                Ok(receipt) => return Ok(Some(receipt.entry)),
                // Another worker got the run first.
                Err(RunError::Refused(_) | RunError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        // So many other workers take runs that this worker can poll again.
        Ok(None)
    }

    async fn stop_all(
        &self,
        workspace: Option<String>,
        requested_by: Option<String>,
    ) -> Result<Vec<RunId>, RunError> {
        let stop = RunCommand::Control { action: ControlAction::Stop, requested_by, bulk: true };
        let active = self.journal.active(workspace.as_deref()).await?;
        let stopped = stream::iter(active)
            .map(|run| {
                let stop = stop.clone();
                async move {
                    match self.submit(&run, stop).await {
                        Ok(_) => Ok(Some(run)),
                        // The run has ended meanwhile.
                        Err(RunError::Refused(_)) => Ok(None),
                        Err(error) => Err(error),
                    }
                }
            })
            .buffered(SWEEP_CONCURRENCY);
        let stopped: Vec<Result<Option<RunId>, RunError>> = stopped.collect().await;
        stopped.into_iter().filter_map(Result::transpose).collect()
    }

    async fn events(
        &self,
        run: &RunId,
        after: Seq,
        page: Page,
    ) -> Result<Vec<RunRecord>, RunError> {
        let events = self.journal.events(run, after, page).await?;
        if events.is_empty() {
            self.load(run).await?;
        }
        Ok(events)
    }
}

/// A run that is being assigned.
struct AssignmentClaim<'a> {
    assigning: &'a Mutex<HashSet<RunId>>,
    run: RunId,
}

impl<'a> AssignmentClaim<'a> {
    fn first_of(assigning: &'a Mutex<HashSet<RunId>>, waiting: &[RunId]) -> Option<Self> {
        let mut taken = lock(assigning);
        let run = waiting.iter().find(|run| !taken.contains(*run))?.clone();
        taken.insert(run.clone());
        Some(Self { assigning, run })
    }
}

impl Drop for AssignmentClaim<'_> {
    fn drop(&mut self) {
        lock(self.assigning).remove(&self.run);
    }
}

impl Runs for RunService {
    fn create(&self, new: NewRun) -> BoxFuture<'_, Result<RunReceipt, RunError>> {
        Box::pin(self.inner.create(new))
    }

    fn submit(
        &self,
        run: &RunId,
        command: RunCommand,
    ) -> BoxFuture<'_, Result<RunReceipt, RunError>> {
        let run = run.clone();
        Box::pin(async move { self.inner.submit(&run, command).await })
    }

    fn stop_all(
        &self,
        workspace: Option<String>,
        requested_by: Option<String>,
    ) -> BoxFuture<'_, Result<Vec<RunId>, RunError>> {
        Box::pin(self.inner.stop_all(workspace, requested_by))
    }

    fn poll(&self, workspace: String, worker: Worker) -> BoxFuture<'_, Result<RunPoll, RunError>> {
        Box::pin(async move { self.inner.poll(&workspace, worker).await })
    }

    fn view(&self, run: &RunId) -> BoxFuture<'_, Result<RunEntry, RunError>> {
        let run = run.clone();
        Box::pin(async move { self.inner.load(&run).await })
    }

    fn events(
        &self,
        run: &RunId,
        after: Seq,
        page: Page,
    ) -> BoxFuture<'_, Result<Vec<RunRecord>, RunError>> {
        let run = run.clone();
        Box::pin(async move { self.inner.events(&run, after, page).await })
    }

    fn list(
        &self,
        filter: RunFilter,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<RunEntry>, RunError>> {
        Box::pin(async move { Ok(self.inner.journal.list(filter, limit).await?) })
    }
}

/// Locks even if another thread panicked: every change is made in one step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
