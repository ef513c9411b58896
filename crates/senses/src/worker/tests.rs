//! Tests that requests are batched, limited, dropped and answered.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use quintet_kernel::port::SenseError;
use tokio::task::{JoinSet, spawn_blocking};

use super::{Engine, Limits, Worker, failed};

/// Doubles numbers, reports every batch and waits for permission to compute it.
struct Doubler {
    batches: Sender<Vec<u32>>,
    permits: Arc<Mutex<Receiver<()>>>,
    abandoned: Arc<AtomicUsize>,
}

impl Engine for Doubler {
    type Input = u32;
    type Output = u32;

    fn run(
        &mut self,
        batch: Vec<u32>,
        abandoned: &dyn Fn() -> bool,
    ) -> Vec<Result<u32, SenseError>> {
        let _ = self.batches.send(batch.clone());
        self.permits.lock().unwrap().recv().unwrap();
        if abandoned() {
            self.abandoned.fetch_add(1, Ordering::SeqCst);
        }
        assert!(!batch.contains(&13), "a bug of the model");
        batch.into_iter().map(|n| Ok(2 * n)).collect()
    }
}

struct Setup {
    worker: Arc<Worker<Doubler>>,
    batches: Receiver<Vec<u32>>,
    permits: Sender<()>,
    loads: Arc<AtomicUsize>,
    abandoned: Arc<AtomicUsize>,
}

fn setup(idle: Duration) -> Setup {
    let ((batches_in, batches), (permits, permits_out)) = (channel(), channel());
    let (permits_out, loads) = (Arc::new(Mutex::new(permits_out)), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&loads);
    let abandoned = Arc::new(AtomicUsize::new(0));
    let noted = Arc::clone(&abandoned);
    let load = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        let (batches, permits) = (batches_in.clone(), Arc::clone(&permits_out));
        Ok(Doubler { batches, permits, abandoned: Arc::clone(&noted) })
    };
    let limits = Limits { queue: 3, batch: 2, idle };
    let worker = Arc::new(Worker::new("test", limits, load));
    Setup { worker, batches, permits, loads, abandoned }
}

const LONG: Duration = Duration::from_secs(3600);

/// Submits a number and waits until the worker computes it.
async fn begin(
    worker: &Arc<Worker<Doubler>>,
    batches: Receiver<Vec<u32>>,
) -> (JoinSet<u32>, Receiver<Vec<u32>>) {
    let mut tasks = JoinSet::new();
    let worker = Arc::clone(worker);
    tasks.spawn(async move { worker.submit(1, 1).await.unwrap().output });
    let first = spawn_blocking(move || (batches.recv().unwrap(), batches));
    let (first, batches) = first.await.unwrap();
    assert_eq!(first, [1]);
    (tasks, batches)
}

#[tokio::test]
async fn waiting_requests_are_computed_together_up_to_the_limit() {
    let Setup { worker, batches, permits, loads, .. } = setup(LONG);
    assert!(!worker.is_running());
    let (mut tasks, batches) = begin(&worker, batches).await;
    // These wait while the first is computed; a fourth one is refused.
    let submit = async |n: u32| worker.submit(n, 1).await.map(|done| done.output);
    let waiting = join_all([submit(2), submit(3), submit(4), submit(5)]);
    let allow = async { (0..3).for_each(|_| permits.send(()).unwrap()) };
    let (answers, ()) = tokio::join!(waiting, allow);
    assert_eq!(answers, [Ok(4), Ok(6), Ok(8), Err(SenseError::Busy)]);
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 2);
    assert_eq!(batches.iter().take(2).collect::<Vec<_>>(), [vec![2, 3], vec![4]]);
    assert_eq!(loads.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_request_that_is_dropped_is_not_computed() {
    let Setup { worker, batches, permits, .. } = setup(LONG);
    let (mut tasks, batches) = begin(&worker, batches).await;
    let dropped = worker.submit(2, 1);
    assert!(tokio::time::timeout(Duration::ZERO, dropped).await.is_err());
    (0..2).for_each(|_| permits.send(()).unwrap());
    assert_eq!(worker.submit(3, 1).await.unwrap().output, 6);
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), 2);
    assert_eq!(batches.try_iter().collect::<Vec<_>>(), [[3]]);
}

#[tokio::test]
async fn a_model_learns_that_its_batch_is_abandoned() {
    let Setup { worker, batches, permits, abandoned, .. } = setup(LONG);
    let (tasks, _batches) = begin(&worker, batches).await;
    drop(tasks);
    tokio::task::yield_now().await;
    (0..2).for_each(|_| permits.send(()).unwrap());
    assert_eq!(worker.submit(2, 1).await.unwrap().output, 4);
    assert_eq!(abandoned.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_idle_model_is_unloaded_and_loaded_again() {
    let Setup { worker, permits, loads, .. } = setup(Duration::ZERO);
    for round in 1..3 {
        permits.send(()).unwrap();
        assert_eq!(worker.submit(1, 1).await.unwrap().output, 2);
        while worker.is_running() {
            tokio::task::yield_now().await;
        }
        assert_eq!(loads.load(Ordering::SeqCst), round);
    }
}

#[tokio::test]
async fn a_panic_is_a_failure_and_the_model_is_loaded_again() {
    let Setup { worker, permits, loads, .. } = setup(LONG);
    (0..2).for_each(|_| permits.send(()).unwrap());
    assert_eq!(worker.submit(13, 1).await.map(|done| done.output), Err(failed("the model failed")));
    assert_eq!(worker.submit(2, 1).await.unwrap().output, 4);
    assert_eq!(loads.load(Ordering::SeqCst), 2);
}
