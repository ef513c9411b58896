//! Copies everything from one store into another, and compares.
//!
//! An interrupted copy can be resumed: existing sessions are appended to from their head on.
//! Snapshots are not copied, because they can be computed from the journal.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use quintet_kernel::event::{Record, Seq};
use quintet_kernel::id::{BlobId, RunId, SessionId};
use quintet_kernel::port::{
    Alias, Artifact, Artifacts, Batch, Blobs, BoxFuture, Installs, Journal, Lease, Leases, Page,
    Preferences, RunFilter, RunJournal, SessionIndex, StorageError, Uploads,
};
use quintet_kernel::run::{RunRecord, RunState, evolve};
use quintet_kernel::session_summary::{Fork, SessionSummary};
use serde_json::Value;

/// The size of a read.
const PAGE: Page = Page { events: 512, bytes: 4 * 1024 * 1024 };
/// The bytes of an upload that are copied per step.
const UPLOAD_PART: usize = 1024 * 1024;

/// A setting: its space, name and value.
pub type Setting = (String, String, Value);
/// An artifact, and the sessions that refer to it.
pub type ReferencedArtifact = (Artifact, Vec<SessionId>);

/// Lists of everything that ports can only look up by name.
pub trait Contents: Send + Sync {
    /// All aliases of sessions.
    fn aliases(&self) -> BoxFuture<'_, Result<Vec<(Alias, SessionId)>, StorageError>>;
    /// Every setting of front ends.
    fn settings(&self) -> BoxFuture<'_, Result<Vec<Setting>, StorageError>>;
    /// Every artifact, and the sessions that refer to it.
    fn artifacts(&self) -> BoxFuture<'_, Result<Vec<ReferencedArtifact>, StorageError>>;
}

/// A store of sessions and of the data of front ends.
pub trait CompleteStore:
    Journal + Leases + SessionIndex + Installs + Preferences + Artifacts + Contents
{
}

impl<T> CompleteStore for T where
    T: Journal + Leases + SessionIndex + Installs + Preferences + Artifacts + Contents
{
}

/// A store with its blobs and uploads.
#[derive(Clone)]
pub struct TransferEnd {
    /// The store.
    pub store: Arc<dyn CompleteStore>,
    /// Runs.
    pub runs: Arc<dyn RunJournal>,
    /// Content of sessions.
    pub blobs: Arc<dyn Blobs>,
    /// Files of front ends.
    pub uploads: Arc<dyn Uploads>,
}

impl fmt::Debug for TransferEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransferEnd")
    }
}

/// Counts of what was copied or compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Sessions.
    pub sessions: u64,
    /// Events of the sessions; shared events are counted once for each fork.
    pub events: u64,
    /// Blobs.
    pub blobs: u64,
    /// Aliases of sessions.
    pub aliases: u64,
    /// Settings of front ends.
    pub settings: u64,
    /// Registered installs of front ends.
    pub installs: u64,
    /// Files that front ends uploaded.
    pub artifacts: u64,
    /// Runs.
    pub runs: u64,
}

/// Why a copy or comparison failed.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The target has something that the source does not have.
    #[error("{0} is in the target and not in the source: use an empty target")]
    Foreign(String),
    /// The same name has different content.
    #[error("{0} is not the same in both stores")]
    Different(String),
    /// Storage failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Copies everything. Nothing else may use either store.
///
/// # Errors
/// Fails if the target has other content, or storage fails. What was copied stays; a second attempt
/// continues from there.
pub async fn copy(from: &TransferEnd, to: &TransferEnd) -> Result<Report, TransferError> {
    let mut report = Report::default();
    let summaries = in_order(from.store.list(usize::MAX).await?);
    let known: HashSet<&SessionId> = summaries.iter().map(|summary| &summary.id).collect();
    for summary in to.store.list(usize::MAX).await? {
        if !known.contains(&summary.id) {
            return Err(TransferError::Foreign(format!("session {}", summary.id)));
        }
    }
    for summary in &summaries {
        copy_session(from, to, summary, &mut report).await?;
    }
    copy_front_ends(from, to, &mut report).await?;
    copy_runs(from, to, &mut report).await?;
    Ok(report)
}

/// Sorts parents before their forks, otherwise oldest first.
fn in_order(mut summaries: Vec<SessionSummary>) -> Vec<SessionSummary> {
    summaries.reverse();
    let all: HashSet<SessionId> = summaries.iter().map(|summary| summary.id.clone()).collect();
    let (mut done, mut ordered) = (HashSet::new(), Vec::with_capacity(summaries.len()));
    while !summaries.is_empty() {
        let before = summaries.len();
        summaries.retain(|summary| {
            let parent = summary.forked.as_ref().map(|fork| &fork.parent);
            let ready = parent.is_none_or(|id| !all.contains(id) || done.contains(id));
            if ready {
                done.insert(summary.id.clone());
                ordered.push(summary.clone());
            }
            !ready
        });
        if summaries.len() == before {
            // Sessions that name each other as parents can only be damage; each is copied with all
            // its events.
            ordered.append(&mut summaries);
        }
    }
    ordered
}

async fn copy_session(
    from: &TransferEnd,
    to: &TransferEnd,
    summary: &SessionSummary,
    report: &mut Report,
) -> Result<(), TransferError> {
    let lease = to.store.acquire(&summary.id).await?;
    let mut head = match to.store.head(&summary.id).await? {
        Some(head) => head,
        None => begin(from, to, summary, &lease).await?,
    };
    while head < summary.head {
        let records = from.store.read(&summary.id, head, PAGE).await?;
        let Some(last) = records.last() else {
            return Err(TransferError::Different(format!("session {} after {head}", summary.id)));
        };
        let until = last.seq;
        copy_blobs(from, to, &records, report).await?;
        head = to.store.append(&lease, head, batch(records, summary)).await?;
        debug_assert_eq!(head, until);
    }
    if head > summary.head {
        return Err(TransferError::Foreign(format!("event {head} of session {}", summary.id)));
    }
    // The last append may have been only text, or part of an interrupted copy.
    to.store.update(&lease, summary.clone()).await?;
    to.store.release(&lease).await?;
    report.sessions += 1;
    report.events += summary.head;
    Ok(())
}

/// Creates a session: as a fork, if its parent was copied, otherwise empty.
async fn begin(
    from: &TransferEnd,
    to: &TransferEnd,
    summary: &SessionSummary,
    lease: &Lease,
) -> Result<Seq, TransferError> {
    let Some(fork) = &summary.forked else { return Ok(0) };
    let Fork { parent, at } = fork;
    let parent_head = to.store.head(parent).await?;
    let own = from.store.read(&summary.id, *at, Page { events: 1, bytes: 0 }).await?;
    let shares = parent_head.is_some_and(|head| head >= *at) && !own.is_empty();
    if !shares || !same_history(from, &summary.id, parent, *at).await? {
        return Ok(0);
    }
    Ok(to.store.fork(lease, fork, batch(own, summary)).await?)
}

/// True if two sessions have the same events up to a number, as a fork and its parent have unless
/// the parent was deleted and created again.
async fn same_history(
    side: &TransferEnd,
    one: &SessionId,
    other: &SessionId,
    upto: Seq,
) -> Result<bool, TransferError> {
    let page = Page { events: 1, bytes: 0 };
    let at = upto.saturating_sub(1);
    let (one, other) =
        (side.store.read(one, at, page).await?, side.store.read(other, at, page).await?);
    Ok(one == other)
}

fn batch(records: Vec<Record>, summary: &SessionSummary) -> Batch {
    Batch { records: records.into_iter().map(Arc::new).collect(), summary: summary.clone() }
}

async fn copy_blobs(
    from: &TransferEnd,
    to: &TransferEnd,
    records: &[Record],
    report: &mut Report,
) -> Result<(), TransferError> {
    let blobs: HashSet<&BlobId> = records.iter().flat_map(|record| record.event.blobs()).collect();
    for blob in blobs {
        match from.blobs.get(blob).await {
            Ok(content) => {
                to.blobs.put(content).await?;
                report.blobs += 1;
            }
            // Referenced content may never have been stored; then it is missing in both stores.
            Err(StorageError::Missing(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn copy_front_ends(
    from: &TransferEnd,
    to: &TransferEnd,
    report: &mut Report,
) -> Result<(), TransferError> {
    for (alias, session) in from.store.aliases().await? {
        let old = to.store.alias(&alias).await?;
        to.store.set_alias(&alias, &session, old.as_ref()).await?;
        report.aliases += 1;
    }
    for (space, name, value) in from.store.settings().await? {
        to.store.set_preference(&space, &name, value).await?;
        report.settings += 1;
    }
    for install in from.store.all().await? {
        if to.store.find_by_token(&install.token).await?.is_none() {
            to.store.register(install).await?;
        }
        report.installs += 1;
    }
    for (artifact, sessions) in from.store.artifacts().await? {
        copy_upload(from, to, &artifact.id).await?;
        let id = artifact.id.clone();
        if to.store.artifact(&id).await?.is_none() {
            to.store.add(artifact).await?;
        }
        for session in sessions {
            to.store.claim(&id, &session).await?;
        }
        report.artifacts += 1;
    }
    Ok(())
}

async fn copy_upload(
    from: &TransferEnd,
    to: &TransferEnd,
    name: &str,
) -> Result<(), TransferError> {
    let (mut upload, mut position) = (to.uploads.begin().await?, 0);
    loop {
        let part = match from.uploads.part(name, position, UPLOAD_PART).await {
            Err(StorageError::Missing(_)) => return Ok(()),
            part => part?,
        };
        if part.is_empty() {
            return Ok(upload.commit(name).await?);
        }
        position += part.len() as u64;
        upload.write(part).await?;
    }
}

async fn copy_runs(
    from: &TransferEnd,
    to: &TransferEnd,
    report: &mut Report,
) -> Result<(), TransferError> {
    let mut runs = from.runs.list(RunFilter::default(), usize::MAX).await?;
    runs.reverse();
    for entry in runs {
        let id = entry.run.id.clone();
        let mut records = run_events(from, &id).await?.into_iter();
        let Some(first) = records.next() else { continue };
        let Some(mut run) = RunState::begun(id.clone(), &first) else {
            return Err(TransferError::Different(format!("run {id}")));
        };
        let there = run_events(to, &id).await?.len() as Seq;
        if there == 0 {
            to.runs.begin(run.clone(), first, usize::MAX).await?;
        }
        for record in records {
            evolve(&mut run, &record);
            if record.seq > there {
                to.runs.append(&id, record, run.progress.clone()).await?;
            }
        }
        report.runs += 1;
    }
    Ok(())
}

async fn run_events(side: &TransferEnd, run: &RunId) -> Result<Vec<RunRecord>, StorageError> {
    let all = Page { events: usize::MAX, bytes: usize::MAX };
    side.runs.events(run, 0, all).await
}

/// Compares everything that [`copy`] copies: journals event by event, blobs by their content.
///
/// # Errors
/// Fails with the first difference, or if storage fails.
pub async fn compare(one: &TransferEnd, other: &TransferEnd) -> Result<Report, TransferError> {
    let mut report = Report::default();
    let by_id = async |side: &TransferEnd| {
        let mut summaries = side.store.list(usize::MAX).await?;
        summaries.sort_by(|one, other| one.id.cmp(&other.id));
        Ok::<_, StorageError>(summaries)
    };
    let summaries = by_id(one).await?;
    same("the list of sessions", &summaries, &by_id(other).await?)?;
    for summary in &summaries {
        compare_session(one, other, summary, &mut report).await?;
    }
    let sorted = async |side: &TransferEnd| {
        let mut aliases = side.store.aliases().await?;
        aliases.sort_by(|(a, _), (b, _)| (&a.space, &a.name).cmp(&(&b.space, &b.name)));
        Ok::<_, StorageError>(aliases)
    };
    let aliases = sorted(one).await?;
    same("the list of aliases", &aliases, &sorted(other).await?)?;
    let settings = one.store.settings().await?;
    for (space, name, value) in &settings {
        let there = other.store.preference(space, name).await?;
        same(&format!("the setting {space} {name}"), Some(value), there.as_ref())?;
    }
    let installs = one.store.all().await?;
    same("the list of installs", &installs, &other.store.all().await?)?;
    let artifacts = one.store.artifacts().await?;
    same("the list of artifacts", &artifacts, &other.store.artifacts().await?)?;
    let runs = one.runs.list(RunFilter::default(), usize::MAX).await?;
    for entry in &runs {
        let id = &entry.run.id;
        let there = other.runs.run(id).await?.map(|entry| entry.run);
        same(&format!("run {id}"), Some(&entry.run), there.as_ref())?;
        let events = run_events(one, id).await?;
        same(&format!("run {id}"), &events, &run_events(other, id).await?)?;
    }
    report.sessions = summaries.len() as u64;
    report.aliases = aliases.len() as u64;
    report.settings = settings.len() as u64;
    report.installs = installs.len() as u64;
    report.artifacts = artifacts.len() as u64;
    report.runs = runs.len() as u64;
    Ok(report)
}

async fn compare_session(
    one: &TransferEnd,
    other: &TransferEnd,
    summary: &SessionSummary,
    report: &mut Report,
) -> Result<(), TransferError> {
    let mut after = 0;
    while after < summary.head {
        let records = one.store.read(&summary.id, after, PAGE).await?;
        let page = Page { events: records.len(), bytes: usize::MAX };
        let there = other.store.read(&summary.id, after, page).await?;
        same(&format!("session {} after event {after}", summary.id), &records, &there)?;
        let Some(last) = records.last() else { break };
        after = last.seq;
        report.events += records.len() as u64;
        let blobs: HashSet<&BlobId> =
            records.iter().flat_map(|record| record.event.blobs()).collect();
        for blob in blobs {
            let missing = |found: Result<Vec<u8>, StorageError>| match found {
                Ok(content) => Ok(Some(content)),
                Err(StorageError::Missing(_)) => Ok(None),
                Err(error) => Err(error),
            };
            let here = missing(one.blobs.get(blob).await)?;
            let there = missing(other.blobs.get(blob).await)?;
            same(&format!("blob {blob}"), &here, &there)?;
            report.blobs += u64::from(here.is_some());
        }
    }
    Ok(())
}

fn same<T: PartialEq>(what: &str, one: T, other: T) -> Result<(), TransferError> {
    if one == other { Ok(()) } else { Err(TransferError::Different(what.to_owned())) }
}
