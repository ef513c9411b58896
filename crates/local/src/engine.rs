//! The loaded models, each on its own thread.
//!
//! A model is loaded by its first request and dropped after a time without requests. Requests and answers go
//! through channels; nothing here blocks an async thread.

mod answer_history;
mod load;
mod prefix_cache;
mod repetition;
mod sampler;
mod slots;
mod text;
mod tuning;
mod vocab;
mod worker;
mod writer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quintet_kernel::model::{Chunk, Failure, FailureKind, Sampling};
use tokio::sync::mpsc::UnboundedSender;

use vocab::Vocabularies;

use crate::chat::Script;
use crate::chat::small::Help;
use crate::weights::Weights;

/// Settings of local models.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory of the weights.
    pub models_dir: PathBuf,
    /// Tokens in the KV cache of a model, for all sessions together.
    pub window: u32,
    /// A model that is not used for this long is unloaded.
    pub idle: Duration,
    /// Number of compute threads; if `None`, the fastest number for the free processors is
    /// measured.
    pub threads: Option<u32>,
}

/// A request for an answer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prompt: Script,
    /// The names of the offered tools.
    pub(crate) tools: Vec<String>,
    pub(crate) sampling: Sampling,
    /// The help for a small model.
    pub(crate) help: Option<Help>,
    /// Receives the answer. Once it is closed, the job is cancelled.
    pub(crate) chunks: UnboundedSender<Result<Chunk, Failure>>,
}

impl Job {
    fn fail(&self, failure: Failure) {
        // The caller may be gone; then the error is dropped.
        let _ = self.chunks.send(Err(failure));
    }
}

/// The loaded models.
#[derive(Debug)]
pub(crate) struct Engine {
    settings: Settings,
    workers: Mutex<HashMap<&'static str, Worker>>,
    closing: AtomicBool,
    vocabularies: Vocabularies,
}

#[derive(Debug)]
struct Worker {
    jobs: Sender<Job>,
    thread: JoinHandle<()>,
}

impl Engine {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            workers: Mutex::default(),
            closing: AtomicBool::new(false),
            vocabularies: Vocabularies::default(),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The number of tokens of a text for a model; `None` if its file does not exist.
    pub(crate) fn count(&self, weights: &'static Weights, text: &str) -> Option<u64> {
        self.vocabularies.count(&self.settings, weights, text)
    }

    /// Queues a job for a model; loads the model first if needed.
    pub(crate) fn submit(self: &Arc<Self>, weights: &'static Weights, job: Job) {
        let mut workers = self.workers();
        let job = match workers.get(weights.name.as_str()) {
            Some(worker) => match worker.jobs.send(job) {
                Ok(()) => return,
                // The thread has ended.
                Err(refused) => refused.0,
            },
            None => job,
        };
        if self.closing() {
            return job.fail(unavailable("the daemon is shutting down"));
        }
        match self.start(weights, job) {
            Ok(worker) => drop(workers.insert(&weights.name, worker)),
            Err(error) => tracing::error!(%error, "could not start the thread of a model"),
        }
    }

    fn start(self: &Arc<Self>, weights: &'static Weights, first: Job) -> std::io::Result<Worker> {
        let engine = Arc::clone(self);
        self.spawn(weights, move |inbox| worker::run(&engine, weights, first, inbox))
    }

    fn spawn(
        self: &Arc<Self>,
        weights: &'static Weights,
        run: impl FnOnce(&Receiver<Job>) + Send + 'static,
    ) -> std::io::Result<Worker> {
        let (jobs, inbox) = channel();
        let unregister = UnregisterOnPanic { engine: Arc::clone(self), name: &weights.name };
        let run = move || {
            // Dropped before the inbox, so that no other worker can be registered yet.
            let _unregister = unregister;
            run(&inbox);
        };
        let name = format!("model {}", weights.name);
        let thread = std::thread::Builder::new().name(name).spawn(run)?;
        Ok(Worker { jobs, thread })
    }

    /// Removes a worker, unless it was given a job in the meantime.
    fn retire(&self, weights: &Weights, inbox: &Receiver<Job>) -> Option<Job> {
        // Jobs are queued under this lock, so none is lost.
        let mut workers = self.workers();
        let late = inbox.try_recv().ok();
        if late.is_none() {
            workers.remove(weights.name.as_str());
        }
        late
    }

    /// The models that are loaded or being loaded.
    pub(crate) fn loaded(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self.workers().keys().copied().collect();
        names.sort_unstable();
        names
    }

    /// True once all threads should end.
    fn closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Ends all threads; blocks until they have noticed.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let workers: Vec<Worker> = self.workers().drain().map(|(_, worker)| worker).collect();
        for Worker { jobs, thread } in workers {
            drop(jobs);
            if thread.join().is_err() {
                tracing::warn!("the thread of a model panicked");
            }
        }
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<&'static str, Worker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a worker that panicked from the list, so that its model does not count as loaded for ever.
struct UnregisterOnPanic {
    engine: Arc<Engine>,
    name: &'static str,
}

impl Drop for UnregisterOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.engine.workers().remove(self.name);
        }
    }
}

fn unavailable(message: impl Into<String>) -> Failure {
    Failure { kind: FailureKind::Unavailable, message: message.into() }
}

#[cfg(test)]
mod tests;
