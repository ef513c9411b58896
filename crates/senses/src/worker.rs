//! A thread that runs a model: started by the first request, ended after a time without requests.
//!
//! Requests wait in a bounded queue and are computed in batches. A request whose future was dropped is
//! skipped.

use std::collections::VecDeque;
use std::fmt::{self, Debug, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quintet_kernel::port::SenseError;
use tokio::sync::oneshot;

/// A model that is loaded.
pub(crate) trait Engine: Sized + 'static {
    /// A request.
    type Input: Send + 'static;
    /// The answer to a request.
    type Output: Send + 'static;

    /// Computes a batch; one result for each input, in their order. Once `abandoned` returns true, all
    /// callers are gone and the rest need not be computed.
    fn run(
        &mut self,
        batch: Vec<Self::Input>,
        abandoned: &dyn Fn() -> bool,
    ) -> Vec<Result<Self::Output, SenseError>>;
}

/// The limits of a worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of waiting requests.
    pub(crate) queue: usize,
    /// Maximum total cost of requests that are computed together. A single request may exceed it.
    pub(crate) batch: usize,
    /// The model is unloaded after this time without requests.
    pub(crate) idle: Duration,
}

/// An answer and its duration.
#[derive(Debug)]
pub(crate) struct Done<O> {
    pub(crate) output: O,
    pub(crate) queue_wait: Duration,
    pub(crate) service_time: Duration,
}

type Answer<O> = Result<Done<O>, SenseError>;

struct Job<E: Engine> {
    input: E::Input,
    cost: usize,
    queued: Instant,
    answer: oneshot::Sender<Answer<E::Output>>,
}

struct State<E: Engine> {
    queue: VecDeque<Job<E>>,
    /// True while there is a thread.
    running: bool,
    /// True once no more requests can arrive.
    closed: bool,
}

struct Shared<E: Engine> {
    name: &'static str,
    limits: Limits,
    load: Box<dyn Fn() -> Result<E, SenseError> + Send + Sync>,
    state: Mutex<State<E>>,
    changed: Condvar,
}

/// The handle of a worker. Dropping it ends the thread once its batch is computed.
pub(crate) struct Worker<E: Engine>(Arc<Shared<E>>);

impl<E: Engine> Worker<E> {
    /// Nothing is started before the first request.
    pub(crate) fn new(
        name: &'static str,
        limits: Limits,
        load: impl Fn() -> Result<E, SenseError> + Send + Sync + 'static,
    ) -> Self {
        let state = State { queue: VecDeque::new(), running: false, closed: false };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self(Arc::new(Shared { name, limits, load: Box::new(load), state, changed }))
    }

    /// Computes a request. Fails with `Busy` if too many are waiting.
    pub(crate) async fn submit(&self, input: E::Input, cost: usize) -> Answer<E::Output> {
        let (answer, answered) = oneshot::channel();
        self.enqueue(Job { input, cost, queued: now(), answer })?;
        answered.await.unwrap_or_else(|_| Err(failed("the request was dropped")))
    }

    fn enqueue(&self, job: Job<E>) -> Result<(), SenseError> {
        let mut state = self.0.state();
        if state.queue.len() >= self.0.limits.queue {
            state.queue.retain(|job| !job.answer.is_closed());
        }
        if state.queue.len() >= self.0.limits.queue {
            return Err(SenseError::Busy);
        }
        if !state.running {
            let shared = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name(self.0.name.into());
            let started = thread.spawn(move || shared.run());
            started.map_err(|error| failed(format!("no thread for {}: {error}", self.0.name)))?;
            state.running = true;
        }
        state.queue.push_back(job);
        self.0.changed.notify_one();
        Ok(())
    }

    /// True while a thread holds the model.
    pub(crate) fn is_running(&self) -> bool {
        self.0.state().running
    }
}

impl<E: Engine> Drop for Worker<E> {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_one();
    }
}

impl<E: Engine> Debug for Worker<E> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl<E: Engine> Shared<E> {
    fn state(&self) -> MutexGuard<'_, State<E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut engine = None;
        loop {
            let mut batch = self.next(&mut engine);
            if batch.is_empty() {
                break;
            }
            batch.retain(|job| !job.answer.is_closed());
            if !batch.is_empty() {
                self.compute(&mut engine, batch);
            }
        }
    }

    /// Waits for requests; returns none if the thread should end, after the model was dropped.
    fn next(&self, engine: &mut Option<E>) -> Vec<Job<E>> {
        let mut state = self.state();
        loop {
            if !state.queue.is_empty() && !state.closed {
                return take(&mut state.queue, self.limits.batch);
            }
            let waited = self.changed.wait_timeout_while(state, self.limits.idle, |state| {
                state.queue.is_empty() && !state.closed
            });
            let (after, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            if state.closed || timeout.timed_out() {
                drop(state);
                if engine.take().is_some() {
                    quintet_allocator::release_free_memory();
                    tracing::info!(sense = self.name, "model unloaded");
                }
                state = self.state();
                if state.closed || state.queue.is_empty() {
                    state.running = false;
                    return Vec::new();
                }
            }
        }
    }

    fn compute(&self, engine: &mut Option<E>, batch: Vec<Job<E>>) {
        let started = now();
        let loaded = match engine.take() {
            Some(loaded) => Ok(loaded),
            None => self.load(),
        };
        let mut loaded = match loaded {
            Ok(loaded) => loaded,
            Err(error) => {
                tracing::warn!(sense = self.name, %error, "model not loaded");
                return batch.into_iter().for_each(|job| drop(job.answer.send(Err(error.clone()))));
            }
        };
        let mut inputs = Vec::with_capacity(batch.len());
        let mut waiting: Vec<(oneshot::Sender<Answer<E::Output>>, Duration)> =
            Vec::with_capacity(batch.len());
        for job in batch {
            inputs.push(job.input);
            waiting.push((job.answer, started.saturating_duration_since(job.queued)));
        }
        let abandoned = || waiting.iter().all(|(answer, _)| answer.is_closed());
        let outputs = catch_unwind(AssertUnwindSafe(|| loaded.run(inputs, &abandoned)));
        let service_time = started.elapsed();
        // A model that panicked is not used again.
        if outputs.is_ok() {
            *engine = Some(loaded);
        }
        let mut outputs = outputs.unwrap_or_default().into_iter();
        for (answer, queue_wait) in waiting {
            let output = outputs.next().unwrap_or_else(|| Err(failed("the model failed")));
            // If the receiver is gone, no answer is needed.
            let _ = answer.send(output.map(|output| Done { output, queue_wait, service_time }));
        }
    }

    fn load(&self) -> Result<E, SenseError> {
        let loaded = catch_unwind(AssertUnwindSafe(|| (self.load)()));
        let loaded = loaded.unwrap_or_else(|_| Err(failed("the model cannot be loaded")));
        loaded.inspect(|_| tracing::info!(sense = self.name, "model loaded"))
    }
}

/// Takes requests in order until a batch is full.
fn take<E: Engine>(queue: &mut VecDeque<Job<E>>, limit: usize) -> Vec<Job<E>> {
    let (mut batch, mut cost) = (Vec::new(), 0);
    while let Some(job) = queue.pop_front_if(|job| cost == 0 || cost + job.cost <= limit) {
        cost += job.cost.max(1);
        batch.push(job);
    }
    batch
}

/// The result of an abandoned request, which nothing receives.
pub(crate) fn cancelled() -> SenseError {
    failed("the request was cancelled")
}

pub(crate) fn failed(reason: impl Into<String>) -> SenseError {
    SenseError::Failed(reason.into())
}

#[expect(
    clippy::disallowed_methods,
    reason = "durations are measured, no decision depends on them"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
