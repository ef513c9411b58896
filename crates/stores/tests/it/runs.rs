//! Tests that every store of runs must pass.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::id::{GeneratedId as _, RunId};
use quintet_kernel::port::{Page, RunEntry, RunFilter, RunJournal, StorageError};
use quintet_kernel::run::{
    ControlAction, NewRun, Reporter, RunCommand, RunRecord, RunState, RunStatus, Worker, begin,
    handle, replay,
};
use quintet_kernel::stamp::Stamp;
use quintet_kernel::time::Time;
use serde_json::{Map, json};

use crate::stores_under_test::Subject;

const ALL: Page = Page { events: 99, bytes: usize::MAX };

fn at(seconds: u64) -> Time {
    Time::from_micros(0).after(Duration::from_secs(seconds))
}

fn id(name: &str) -> RunId {
    RunId::named(name.into())
}

fn new(workspace: &str) -> NewRun {
    NewRun {
        workspace: workspace.into(),
        agent: Some("a".into()),
        query: "do it".into(),
        requested_by: None,
        files: Vec::new(),
        metadata: Map::from_iter([("n".to_owned(), json!(1))]),
        conversation: None,
    }
}

fn worker(name: &str) -> Worker {
    let (session, agent, user) = (None, None, Some("u".into()));
    let (vm, status, metadata) = ("vm".into(), "ready".into(), Map::new());
    Worker { id: name.into(), vm, user, session, agent, status, metadata }
}

fn assign(name: &str) -> RunCommand {
    RunCommand::Assign { worker: worker(name) }
}

const STOP: RunCommand =
    RunCommand::Control { action: ControlAction::Stop, requested_by: None, bulk: false };

/// Creates a run; true if the limit allowed it.
async fn create(store: &Arc<dyn RunJournal>, name: &str, workspace: &str, limit: usize) -> bool {
    let record = RunRecord { seq: 1, at: at(1), event: begin(&id(name), new(workspace)) };
    let run = RunState::begun(id(name), &record).unwrap();
    store.begin(run, record, limit).await.unwrap()
}

/// Loads a run, decides and appends.
async fn change(
    store: &Arc<dyn RunJournal>,
    name: &str,
    seconds: u64,
    command: RunCommand,
) -> Result<RunState, StorageError> {
    let mut run = store.run(&id(name)).await.unwrap().expect("the run exists").run;
    let stamp = Stamp::new(at(seconds), [run.progress.head, 0]);
    let record = handle(&mut run, command, &stamp)
        .expect("the command is accepted")
        .expect("the command has an effect");
    store.append(&run.id, record, run.progress.clone()).await?;
    Ok(run)
}

async fn waiting(store: &Arc<dyn RunJournal>, workspace: &str) -> String {
    let ids = store.waiting(workspace, 9).await.unwrap();
    ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(" ")
}

fn names(entries: &[RunEntry]) -> String {
    entries.iter().map(|entry| entry.run.id.as_str()).collect::<Vec<_>>().join(" ")
}

async fn listed(store: &Arc<dyn RunJournal>, filter: RunFilter) -> String {
    names(&store.list(filter, 9).await.unwrap())
}

#[tokio::test]
async fn a_run_is_read_back_also_after_a_restart() {
    for subject in Subject::all() {
        let store = subject.start_runs();
        assert!(create(&store, "r", "w", 9).await);
        let run = change(&store, "r", 2, assign("x")).await.unwrap();
        drop(store);
        let store = subject.start_runs();
        let entry = store.run(&id("r")).await.unwrap().unwrap();
        assert_eq!((&entry.run, entry.heartbeat), (&run, Some(at(2))));
        let records = store.events(&id("r"), 0, ALL).await.unwrap();
        assert_eq!(replay(&id("r"), &records).as_ref(), Some(&run));
        assert_eq!(records.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(store.events(&id("r"), 1, ALL).await.unwrap(), records[1..]);
        let one = Page { events: 99, bytes: 1 };
        assert_eq!(store.events(&id("r"), 0, one).await.unwrap(), records[..1]);
        assert_eq!(store.events(&id("r"), u64::MAX, ALL).await.unwrap(), []);
        assert_eq!(store.events(&id("n"), 0, ALL).await.unwrap(), []);
        assert_eq!(store.run(&id("n")).await.unwrap(), None);
    }
}

#[tokio::test]
async fn of_two_appends_with_the_same_number_one_conflicts() {
    for subject in Subject::all() {
        let store = subject.start_runs();
        create(&store, "r", "w", 9).await;
        let begun = store.run(&id("r")).await.unwrap().unwrap().run;
        let mut appends = Vec::new();
        for name in ["x", "y", "z"] {
            let mut run = begun.clone();
            let record = handle(&mut run, assign(name), &Stamp::new(at(2), [1, 2])).unwrap();
            appends.push((run, record.unwrap()));
        }
        // All are queued before the first is awaited.
        let queued: Vec<_> = appends
            .iter()
            .map(|(run, record)| store.append(&run.id, record.clone(), run.progress.clone()))
            .collect();
        let mut tried = Vec::new();
        for (queued, (run, _)) in queued.into_iter().zip(&appends) {
            tried.push(queued.await.map(|()| run.progress.binding.clone()));
        }
        let taken: Vec<_> = tried.iter().filter_map(|tried| tried.as_ref().ok()).collect();
        assert_eq!(taken.len(), 1);
        let late = |tried: &&Result<_, _>| matches!(tried, Err(StorageError::Conflict(2)));
        assert_eq!(tried.iter().filter(late).count(), 2, "{tried:?}");
        let kept = store.run(&id("r")).await.unwrap().unwrap().run;
        assert_eq!(&kept.progress.binding, taken[0]);
    }
}

#[tokio::test]
async fn the_queue_is_first_in_first_out_by_workspace() {
    for subject in Subject::all() {
        let store = subject.start_runs();
        for (name, workspace) in [("c", "w"), ("a", "w"), ("o", "other"), ("b", "w")] {
            create(&store, name, workspace, 9).await;
        }
        assert_eq!(waiting(&store, "w").await, "c a b");
        assert_eq!(store.waiting("w", 2).await.unwrap(), [id("c"), id("a")]);
        change(&store, "c", 2, assign("x")).await.unwrap();
        assert_eq!(waiting(&store, "w").await, "a b");
        let lost =
            RunCommand::Expire { heartbeat: at(2), grace: Duration::from_secs(60), most_losses: 3 };
        change(&store, "c", 99, lost).await.unwrap();
        assert_eq!(waiting(&store, "w").await, "c a b");
        change(&store, "a", 3, STOP).await.unwrap();
        drop(store);
        let store = subject.start_runs();
        assert_eq!(waiting(&store, "w").await, "c b");
        assert_eq!(waiting(&store, "other").await, "o");
        assert_eq!(waiting(&store, "none").await, "");
    }
}

#[tokio::test]
async fn the_number_of_active_runs_is_limited_by_workspace() {
    for subject in Subject::all() {
        let store = subject.start_runs();
        assert!(create(&store, "a", "w", 2).await);
        assert!(create(&store, "b", "w", 2).await);
        assert!(!create(&store, "c", "w", 2).await);
        assert!(create(&store, "c", "v", 2).await);
        change(&store, "a", 2, STOP).await.unwrap();
        assert!(create(&store, "d", "w", 2).await);
        assert!(!create(&store, "e", "w", 2).await);
        assert_eq!(store.active(Some("w")).await.unwrap(), [id("b"), id("d")]);
        assert_eq!(store.active(None).await.unwrap(), [id("b"), id("c"), id("d")]);
        assert_eq!(store.run(&id("e")).await.unwrap(), None);
    }
}

#[tokio::test]
async fn heartbeats_renew_the_leases_of_a_worker() {
    for subject in Subject::all() {
        let store = subject.start_runs();
        for name in ["a", "b", "c"] {
            create(&store, name, "w", 9).await;
        }
        change(&store, "a", 10, assign("x")).await.unwrap();
        change(&store, "b", 20, assign("x")).await.unwrap();
        change(&store, "c", 15, assign("y")).await.unwrap();
        assert_eq!(names(&store.silent(at(16), 9).await.unwrap()), "a c");
        assert_eq!(names(&store.silent(at(16), 1).await.unwrap()), "a");
        store.renew("x", at(17), false).await.unwrap();
        assert_eq!(names(&store.silent(at(16), 9).await.unwrap()), "a c", "nobody began");
        store.renew("x", at(18), true).await.unwrap();
        assert_eq!(names(&store.silent(at(19), 9).await.unwrap()), "c a");
        let b = store.run(&id("b")).await.unwrap().unwrap();
        assert_eq!(b.heartbeat, Some(at(20)), "a heartbeat never goes back");
        let mine = store.of_worker("x").await.unwrap();
        assert_eq!((mine.heartbeat, names(&mine.commanded).as_str()), (Some(at(18)), ""));
        // A worker that has to stop gets the command, and its lease is no longer checked.
        change(&store, "a", 30, STOP).await.unwrap();
        let mine = store.of_worker("x").await.unwrap();
        assert_eq!((mine.heartbeat, names(&mine.commanded).as_str()), (Some(at(20)), "a"));
        assert_eq!(names(&store.silent(at(99), 9).await.unwrap()), "c b");
        let by = Reporter { worker: "x".into(), assignment: Some(1) };
        let dispatched = RunCommand::Dispatch {
            by,
            user: "u".into(),
            turn: "t".into(),
            conversation: Some("c".into()),
        };
        let run = change(&store, "b", 40, dispatched).await.unwrap();
        assert_eq!(run.progress.status, RunStatus::Running);
        drop(store);
        let store = subject.start_runs();
        let mine = store.of_worker("x").await.unwrap();
        assert_eq!((mine.heartbeat, names(&mine.commanded).as_str()), (Some(at(40)), "a"));
        let none = store.of_worker("z").await.unwrap();
        assert_eq!((none.heartbeat, none.commanded.len()), (None, 0));
    }
}

#[tokio::test]
async fn runs_are_listed_newest_first_by_filter() {
    for subject in Subject::all() {
        let store = subject.start_runs();
        for (name, workspace) in [("a", "w"), ("b", "v"), ("c", "w")] {
            create(&store, name, workspace, 9).await;
        }
        change(&store, "a", 2, assign("x")).await.unwrap();
        change(&store, "c", 3, STOP).await.unwrap();
        let all = RunFilter::default();
        assert_eq!(listed(&store, all.clone()).await, "c b a");
        let of = RunFilter { workspace: Some("w".into()), ..all.clone() };
        assert_eq!(listed(&store, of.clone()).await, "c a");
        assert_eq!(listed(&store, RunFilter { active: true, ..of.clone() }).await, "a");
        let stopped = RunFilter { status: Some(RunStatus::Stopped), ..all.clone() };
        assert_eq!(listed(&store, stopped).await, "c");
        let bound = RunFilter { worker: Some("x".into()), ..all };
        assert_eq!(listed(&store, bound).await, "a");
    }
}

#[tokio::test]
async fn a_fenced_store_writes_no_runs() {
    let subject = Subject::Memory(quintet_stores::memory::MemoryStore::new());
    let old = subject.start_runs();
    create(&old, "r", "w", 9).await;
    let store = subject.start_runs();
    let late = change(&old, "r", 2, assign("x")).await;
    assert!(matches!(late, Err(StorageError::Fenced)), "{late:?}");
    assert!(matches!(old.renew("x", at(1), true).await, Err(StorageError::Fenced)));
    change(&store, "r", 2, assign("x")).await.unwrap();
}
