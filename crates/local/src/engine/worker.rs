//! The thread of one model: loads it, answers requests, and ends when there are none.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use quintet_kernel::model::{Chunk, Failure};

use super::load::{Loaded, load};
use super::writer::{Stop, Writer};
use super::{Engine, Job};
use crate::weights::Weights;

/// How much lower the priority of a model's threads is than that of the others.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

pub(super) fn run(engine: &Engine, weights: &Weights, first: Job, inbox: &Receiver<Job>) {
    yield_to_others();
    // Not now, says the model, and the first try follows as soon as it is there.
    let reason = format!("{} is being loaded ({} MB)", weights.name, weights.file.size / 1_000_000);
    let _ = first.news.send(Ok(Chunk::Retrying { attempt: 1, wait: Duration::ZERO, reason }));
    match load(engine.settings(), weights) {
        Ok(loaded) => serve(engine, weights, &loaded, first, inbox),
        Err(failure) => refuse(engine, weights, &failure, first, inbox),
    }
}

/// Lets other threads go first where processors are scarce, so that other sessions do not wait for a model that
/// computes. The threads that this one starts inherit that.
#[cfg(target_os = "linux")]
fn yield_to_others() {
    // On Linux this is about the calling thread alone.
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "the priority of a model is not lowered");
    }
}

/// Elsewhere the priority is that of the whole process.
#[cfg(not(target_os = "linux"))]
fn yield_to_others() {}

fn serve(engine: &Engine, weights: &Weights, loaded: &Loaded, first: Job, inbox: &Receiver<Job>) {
    let mut writer = match Writer::new(loaded) {
        Ok(writer) => writer,
        Err(failure) => return refuse(engine, weights, &failure, first, inbox),
    };
    tracing::info!(model = weights.name, "model loaded");
    let mut next = Some(first);
    while let Some(job) = next {
        answer(engine, &mut writer, &job);
        drop(job);
        next = match inbox.recv_timeout(engine.settings().idle) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => engine.retire(weights, inbox),
            Err(RecvTimeoutError::Disconnected) => None,
        };
    }
    tracing::info!(model = weights.name, "model unloaded");
}

fn answer(engine: &Engine, writer: &mut Writer<'_>, job: &Job) {
    let gone = || job.news.is_closed() || engine.closing();
    match writer.answer(job, &gone) {
        Ok(answer) => drop(job.news.send(Ok(Chunk::Finished(answer)))),
        Err(Stop::Gone) => {}
        Err(Stop::Failed(failure)) => job.fail(failure),
    }
}

/// Refuses the jobs that wait. The next job has the model loaded again.
fn refuse(
    engine: &Engine,
    weights: &Weights,
    failure: &Failure,
    first: Job,
    inbox: &Receiver<Job>,
) {
    tracing::warn!(model = weights.name, reason = failure.message, "model not loaded");
    let mut next = Some(first);
    while let Some(job) = next {
        job.fail(failure.clone());
        next = engine.retire(weights, inbox);
    }
}
