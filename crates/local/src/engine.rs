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

/// How models are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the weights are.
    pub models_dir: PathBuf,
    /// Tokens that a model keeps in mind at once, all sessions together.
    pub window: u32,
    /// A model that is not used for this long is unloaded.
    pub idle: Duration,
    /// Threads that compute; if not given, as many as turn out to be fastest on the free processors.
    pub threads: Option<u32>,
}

/// Something to answer.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) prompt: Script,
    /// The names of the tools on offer.
    pub(crate) tools: Vec<String>,
    pub(crate) sampling: Sampling,
    /// The help that a small model gets.
    pub(crate) help: Option<Help>,
    /// Where the answer goes. Nobody wants it any more once this is closed.
    pub(crate) news: UnboundedSender<Result<Chunk, Failure>>,
}

impl Job {
    fn fail(&self, failure: Failure) {
        // The caller may be gone; then the error is dropped.
        let _ = self.news.send(Err(failure));
    }
}

/// Every model that is loaded.
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

    /// How many tokens a text is to a model; nothing if its file is not here.
    pub(crate) fn count(&self, weights: &'static Weights, text: &str) -> Option<u64> {
        self.vocabularies.count(&self.settings, weights, text)
    }

    /// Has a model answer; loads it first if need be.
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
            Err(error) => tracing::error!(%error, "no thread for a model"),
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

    /// Lets a worker go, unless it was given something to do in the meantime.
    fn retire(&self, weights: &Weights, inbox: &Receiver<Job>) -> Option<Job> {
        // Jobs are handed over under this lock, so none can be left behind.
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

    /// Whether everything should end.
    fn closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Ends every thread; blocks for as long as a model takes to notice.
    pub(crate) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        let workers: Vec<Worker> = self.workers().drain().map(|(_, worker)| worker).collect();
        for Worker { jobs, thread } in workers {
            drop(jobs);
            if thread.join().is_err() {
                tracing::warn!("a model's thread had failed");
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
