//! Tests of the control plane of runs: each run has one worker, however many workers and daemons
//! there are.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::id::RunId;
use quintet_kernel::port::{RunError, Runs as _, StorageError};
use quintet_kernel::run::{
    ControlAction, NewRun, Reporter, RunCommand, RunRefusal, RunStatus, Worker,
};
use quintet_runtime::{RunService, RunSettings};
use quintet_stores::memory::MemoryStore;
use quintet_testkit::clock::FakeClock;
use serde_json::Map;
use tokio::task::JoinSet;
use tokio::time::advance;

const SETTINGS: RunSettings =
    RunSettings { most_active: 1000, lease: Duration::from_secs(60), most_losses: 2 };

/// Several daemons on one store.
fn daemons(count: usize) -> Vec<RunService> {
    let (store, clock) = (MemoryStore::new(), Arc::new(FakeClock::new()));
    let service = |_| RunService::new(Arc::new(store.clone()), clock.clone(), SETTINGS);
    (0..count).map(service).collect()
}

fn new(workspace: &str) -> NewRun {
    NewRun {
        workspace: workspace.into(),
        agent: None,
        query: "q".into(),
        requested_by: None,
        files: Vec::new(),
        metadata: Map::new(),
        conversation: None,
    }
}

fn worker(id: &str, status: &str) -> Worker {
    let (vm, user, session) = ("vm".into(), Some("u".into()), None);
    let (id, status) = (id.to_owned(), status.to_owned());
    Worker { id, vm, user, session, agent: None, status, metadata: Map::new() }
}

async fn create(service: &RunService) -> RunId {
    service.create(new("w")).await.unwrap().entry.run.id
}

async fn poll(service: &RunService, id: &str, status: &str) -> Option<RunId> {
    let polled = service.poll("w".into(), worker(id, status)).await.unwrap();
    polled.assigned.map(|entry| entry.run.id)
}

async fn status(service: &RunService, run: &RunId) -> RunStatus {
    service.view(run).await.unwrap().run.progress.status
}

fn dispatch(worker: &str, assignment: u64) -> RunCommand {
    RunCommand::Dispatch {
        by: Reporter { worker: worker.into(), assignment: Some(assignment) },
        user: "u".into(),
        turn: format!("t{assignment}"),
        conversation: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_daemons_on_one_store_never_assign_a_run_twice() {
    let daemons = daemons(2);
    for _ in 0..200 {
        create(&daemons[0]).await;
    }
    let mut polls = JoinSet::new();
    for n in 0..400 {
        let service = daemons[n % 2].clone();
        polls.spawn(async move { poll(&service, &format!("w{n}"), "ready").await });
    }
    let mut assigned: Vec<RunId> = polls.join_all().await.into_iter().flatten().collect();
    // Workers that got no run poll again.
    while let Some(run) = poll(&daemons[0], "last", "ready").await {
        assigned.push(run);
    }
    assert_eq!(assigned.len(), 200);
    assigned.sort();
    assigned.dedup();
    assert_eq!(assigned.len(), 200, "no run was assigned twice");
}

#[tokio::test]
async fn a_decision_uses_the_events_of_other_daemons() {
    let daemons = daemons(2);
    let run = create(&daemons[0]).await;
    poll(&daemons[0], "x", "ready").await;
    daemons[1].submit(&run, dispatch("x", 1)).await.unwrap();
    let stop = RunCommand::Control { action: ControlAction::Stop, requested_by: None, bulk: false };
    daemons[1].submit(&run, stop.clone()).await.unwrap();
    let late = daemons[0].submit(&run, stop).await;
    let finished = RunRefusal::Finished(RunStatus::Stopped);
    assert!(matches!(late, Err(RunError::Refused(refusal)) if refusal == finished));
}

#[tokio::test(start_paused = true)]
async fn a_silent_worker_loses_its_run_and_then_the_run_fails() {
    let service = daemons(1).remove(0);
    let run = create(&service).await;
    for (assignment, then) in [(1, RunStatus::AwaitingWorker), (2, RunStatus::Failed)] {
        assert_eq!(poll(&service, "x", "ready").await, Some(run.clone()));
        service.submit(&run, dispatch("x", assignment)).await.unwrap();
        for _ in 0..10 {
            advance(Duration::from_secs(10)).await;
            poll(&service, "x", "busy").await;
            assert_eq!(service.expire().await.unwrap(), 0, "the worker sent a heartbeat");
        }
        for _ in 0..5 {
            advance(Duration::from_secs(10)).await;
            assert_eq!(service.expire().await.unwrap(), 0, "the lease has not expired");
        }
        advance(Duration::from_secs(20)).await;
        assert_eq!(service.expire().await.unwrap(), 1);
        assert_eq!(service.expire().await.unwrap(), 0);
        assert_eq!(status(&service, &run).await, then);
        let late = service.submit(&run, dispatch("x", assignment)).await;
        assert!(matches!(late, Err(RunError::Refused(RunRefusal::Mismatch))));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_never_started_is_queued_again() {
    let service = daemons(1).remove(0);
    let run = create(&service).await;
    assert_eq!(poll(&service, "x", "ready").await, Some(run.clone()));
    // The reply was lost: the worker has no run and reports `ready`.
    for _ in 0..7 {
        advance(Duration::from_secs(10)).await;
        poll(&service, "x", "ready").await;
        service.expire().await.unwrap();
    }
    let entry = service.view(&run).await.unwrap();
    assert_eq!((entry.run.progress.losses, entry.run.progress.assignments), (1, 1));
    assert_eq!(poll(&service, "x", "ready").await, Some(run));
}

#[tokio::test(start_paused = true)]
async fn workers_have_a_full_lease_after_downtime() {
    let (store, clock) = (MemoryStore::new(), Arc::new(FakeClock::new()));
    let start = || RunService::new(Arc::new(store.clone()), clock.clone(), SETTINGS);
    let service = start();
    let run = create(&service).await;
    poll(&service, "x", "ready").await;
    advance(Duration::from_secs(3600)).await;
    // A machine that slept, and a daemon that was restarted.
    for service in [service, start()] {
        assert_eq!(service.expire().await.unwrap(), 0);
        advance(Duration::from_secs(10)).await;
        assert_eq!(service.expire().await.unwrap(), 0);
        assert_eq!(status(&service, &run).await, RunStatus::Queued);
    }
}

#[tokio::test]
async fn all_runs_are_stopped_even_without_workers() {
    let service = daemons(1).remove(0);
    let mut runs = Vec::new();
    for _ in 0..300 {
        runs.push(create(&service).await);
    }
    poll(&service, "x", "ready").await;
    assert_eq!(service.stop_all(Some("other".into()), None).await.unwrap(), []);
    assert_eq!(service.stop_all(Some("w".into()), None).await.unwrap(), runs);
    assert_eq!(service.stop_all(None, None).await.unwrap(), []);
    let polled = service.poll("w".into(), worker("x", "running")).await.unwrap();
    assert_eq!((polled.assigned.is_none(), polled.controls.len()), (true, 1));
}

#[tokio::test]
async fn a_fenced_store_assigns_nothing() {
    let (store, clock) = (MemoryStore::new(), Arc::new(FakeClock::new()));
    let service = RunService::new(Arc::new(store.clone()), clock, SETTINGS);
    create(&service).await;
    let _newer = store.reopen();
    let refused = service.poll("w".into(), worker("x", "ready")).await;
    assert!(matches!(refused, Err(RunError::Storage(StorageError::Fenced))), "{refused:?}");
}
