//! The thread of one model: loads it, answers requests, and ends when there are none for a while.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use quintet_kernel::model::{Chunk, Failure};

use super::load::{Loaded, load};
use super::writer::{Stop, Writer};
use super::{Engine, Job};
use crate::weights::Weights;

/// How much lower the priority of a model's threads is than the default.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 5;

pub(super) fn run(engine: &Engine, weights: &Weights, first: Job, inbox: &Receiver<Job>) {
    lower_priority();
    // Reported as a retry, so that the client shows why it waits.
    let reason = format!("{} is being loaded ({} MB)", weights.name, weights.file.size / 1_000_000);
    let _ = first.chunks.send(Ok(Chunk::Retrying { attempt: 1, wait: Duration::ZERO, reason }));
    match load(engine.settings(), weights) {
        Ok(loaded) => serve(engine, weights, &loaded, first, inbox),
        Err(failure) => refuse(engine, weights, &failure, first, inbox),
    }
}

/// Lowers the thread's priority, so that other sessions do not wait for a model that computes. The
/// threads that this one starts inherit it.
#[cfg(target_os = "linux")]
fn lower_priority() {
    // On Linux this affects only the calling thread.
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "could not lower the priority of a model");
    }
}

/// On other systems the priority belongs to the whole process.
#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

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
    let gone = || job.chunks.is_closed() || engine.closing();
    match writer.answer(job, &gone) {
        Ok(answer) => drop(job.chunks.send(Ok(Chunk::Finished(answer)))),
        Err(Stop::Gone) => {}
        Err(Stop::Failed(failure)) => job.fail(failure),
    }
}

/// Refuses the queued jobs. The next job loads the model again.
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
