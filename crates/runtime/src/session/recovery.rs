//! Loads a session from its journal and recovers work that a crash interrupted.

use std::sync::Arc;

use quintet_kernel::command::{Command, InterruptedCall};
use quintet_kernel::event::{Record, Seq};
use quintet_kernel::follow::Delta;
use quintet_kernel::policy::Rules;
use quintet_kernel::port::{Error, InterruptedChanges, Journal, Lease, Page, StorageError};
use quintet_kernel::session::{Call, CallPhase, decide, evolve};
use quintet_kernel::tool::Placement;
use quintet_kernel::{SessionId, Stamp, State, snapshot};
use tokio::task::spawn_blocking;

use crate::changes::split_changes;
use crate::deps::RuntimeDeps;
use crate::session::store_output::store_changes;
use crate::session::text_buffer::output_commands;

const READ_PAGE: Page = Page { events: 1024, bytes: 4 * 1024 * 1024 };

/// A loaded session, its lease, and the events to append before it continues.
pub(crate) struct LoadedSession {
    pub(crate) state: State,
    /// The last event in the snapshot that loading started from; 0 without a snapshot.
    pub(crate) snapshot: Seq,
    pub(crate) lease: Lease,
    pub(crate) recovered: Recovered,
}

/// The events that recovery appends, in batches with their own times.
pub(crate) type Recovered = Vec<Vec<Arc<Record>>>;

/// Loads a session and closes what its last owner left open. Fails if the session does not
/// exist or storage fails.
pub(crate) async fn load(deps: &RuntimeDeps, id: &SessionId) -> Result<LoadedSession, Error> {
    let lease = deps.leases.acquire(id).await?;
    let loaded = load_owned(deps, id, lease.clone()).await;
    if loaded.is_err() {
        // Another node may succeed; if the release fails, the lease ends with this node.
        let _ = deps.leases.release(&lease).await;
    }
    loaded
}

async fn load_owned(
    deps: &RuntimeDeps,
    id: &SessionId,
    lease: Lease,
) -> Result<LoadedSession, Error> {
    let (mut state, snapshot) = read(&*deps.journal, &deps.rules, id).await?;
    if state.created.is_none() {
        return Err(Error::NotFound(id.clone()));
    }
    let recovered = match state.open {
        Some(_) => recover(deps, &mut state).await?,
        None => {
            deps.refresh_models(&mut state, &Command::Wake);
            deps.refresh_tools(&mut state);
            refresh_summary(deps, &state, &lease).await?;
            // The daemon may have died between the end of a turn and this cleanup.
            if let Some(turn) = state.turns.last().map(|turn| turn.id.clone()) {
                let workspaces = Arc::clone(&deps.workspaces);
                let _ = spawn_blocking(move || workspaces.turn_ended(&turn)).await;
            }
            Vec::new()
        }
    };
    Ok(LoadedSession { state, snapshot, lease, recovered })
}

/// Reads a session from its last snapshot or its first event. Also returns the last event in
/// the snapshot; 0 without one.
pub(crate) async fn read(
    journal: &dyn Journal,
    rules: &Arc<Rules>,
    id: &SessionId,
) -> Result<(State, Seq), StorageError> {
    let restored = restored(journal, rules, id).await;
    let mut state = restored.unwrap_or_else(|| State::new(id.clone(), Arc::clone(rules)));
    let snapshot = state.head;
    read_on(journal, &mut state).await?;
    Ok((state, snapshot))
}

/// Reads what is new in a session's journal.
pub(crate) async fn read_on(journal: &dyn Journal, state: &mut State) -> Result<(), StorageError> {
    loop {
        let records = journal.read(&state.id, state.head, READ_PAGE).await?;
        if records.is_empty() {
            return Ok(());
        }
        state.replay(&records);
    }
}

/// The state in the last snapshot. An unreadable snapshot only costs time.
async fn restored(journal: &dyn Journal, rules: &Arc<Rules>, id: &SessionId) -> Option<State> {
    let found = journal.snapshot(id).await;
    let found = found.inspect_err(|error| tracing::warn!(session = %id, %error, "could not read the snapshot; reading the whole journal"));
    let (found, session, rules) = (found.ok()??, id.clone(), Arc::clone(rules));
    // Restoring a long session takes a while, and other tasks run on this thread.
    let restore = move || snapshot::restore(&found, &session, &rules);
    spawn_blocking(restore).await.ok()?
}

/// Updates the session's summary if it is outdated: the fork of a partial history has its
/// parent's summary until it is loaded for the first time.
async fn refresh_summary(
    deps: &RuntimeDeps,
    state: &State,
    lease: &Lease,
) -> Result<(), StorageError> {
    let summary = state.summary();
    match deps.session_index.summary(&state.id).await {
        Ok(Some(found)) if found == summary => Ok(()),
        // A summary that cannot be read is replaced, too.
        Ok(_) | Err(StorageError::Damaged(_)) => deps.session_index.update(lease, summary).await,
        Err(error) => Err(error),
    }
}

/// Recovers an open turn. Text that followers saw and the journal lacks is in the draft: it is
/// appended first, with the time at which it was shown, so that the time since then is not
/// charged to the turn.
async fn recover(deps: &RuntimeDeps, state: &mut State) -> Result<Recovered, Error> {
    let stamp = deps.clock.stamp();
    let deltas = read_draft(deps, &state.id).await?;
    let shown = deltas.last().map_or(stamp.at, |last| last.at.max(state.updated));
    let then = stamp.at(shown);
    let mut written = Vec::new();
    for output in output_commands(unwritten_deltas(state, deltas)) {
        written.extend(write_output(state, output, &then));
    }
    let interrupted = interrupted_calls(deps, state).await;
    let closed = deps.handle(state, Command::Recover { interrupted }, &stamp)?;
    Ok(vec![written, closed])
}

/// The deltas in the session's draft.
async fn read_draft(deps: &RuntimeDeps, id: &SessionId) -> Result<Vec<Delta>, StorageError> {
    let (drafts, id) = (Arc::clone(&deps.drafts), id.clone());
    let read = spawn_blocking(move || drafts.load(&id)).await;
    read.unwrap_or_else(|error| Err(StorageError::Unavailable(error.to_string())))
}

/// The file changes of the calls that were running.
async fn interrupted_calls(deps: &RuntimeDeps, state: &State) -> Vec<InterruptedCall> {
    let Some(open) = &state.open else { return Vec::new() };
    let may_change = |call: &&Call| matches!(call.phase, CallPhase::Started(kind, Placement::Daemon) if kind.changes_workspace());
    let mut known = Vec::new();
    for call in open.calls().iter().filter(may_change) {
        let found =
            deps.workspaces.interrupted_changes(&state.workspace, &open.id, call.id()).await;
        if let Some(InterruptedChanges { changes, unrecorded }) = found {
            let changes = store_changes(&*deps.undo, changes).await;
            let (changes, more_changes) = split_changes(&*deps.undo, changes).await;
            known.push(InterruptedCall {
                call: call.id().clone(),
                changes,
                more_changes,
                unrecorded,
            });
        }
    }
    known
}

/// Applies model output without advancing the session: the step must not end, for example by
/// its time limit, before it has all the output that followers saw.
pub(crate) fn write_output(state: &mut State, output: Command, stamp: &Stamp) -> Vec<Arc<Record>> {
    let events = decide(state, output, stamp).unwrap_or_default();
    let remember = |event| {
        let record = Record { seq: state.head + 1, at: stamp.at, event };
        evolve(state, &record);
        Arc::new(record)
    };
    events.into_iter().map(remember).collect()
}

/// The deltas of the open step that are not in the journal. A delta is never stored in part.
fn unwritten_deltas(state: &State, mut deltas: Vec<Delta>) -> Vec<Delta> {
    let step = state.open.as_ref().and_then(|open| open.step());
    deltas.retain(|delta| {
        step.is_some_and(|step| step.id == delta.step && step.written <= delta.offset)
    });
    deltas
}
