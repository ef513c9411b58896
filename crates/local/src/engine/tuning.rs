//! Compute settings of a model on this machine: threads and batch size, measured at its first use
//! and stored on disk.
//!
//! The fastest settings depend on the processor: two threads of one core share its arithmetic
//! units, and a large batch may not fit into its caches. The measurement takes seconds, so it is
//! made once per model, engine and number of free processors.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;
use serde::{Deserialize, Serialize};

use super::prefix_cache::{ENGINE, digest};
use crate::weights::Weights;

/// The batch sizes to choose from. A cancelled job ends after at most one batch, so larger ones are
/// not used.
const BATCH_TOKENS: [u32; 3] = [32, 64, 128];
/// A larger batch must take less than this share of the time, because it delays cancellation.
const WORTH_LARGER: f64 = 0.95;
/// Approximate number of evaluated tokens per generated token in a session.
const READ_PER_WRITTEN: f64 = 4.0;
/// Tokens of a measurement: evaluated in one batch, and one by one.
const READ_TOKENS: usize = 64;
const WRITE_TOKENS: usize = 4;
/// Maximum time of a measurement; then the best result so far is used.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(12);

/// Threads and batch size of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tuning {
    /// Threads that compute.
    pub(super) threads: u32,
    /// Tokens per batch.
    pub(super) batch_tokens: u32,
}

impl Tuning {
    /// The values for a machine that could not be measured.
    fn unmeasured(threads: u32) -> Self {
        Self { threads, batch_tokens: 64 }
    }
}

/// The file with the stored values of a model.
#[derive(Debug)]
pub(super) struct TuningFile {
    path: PathBuf,
}

impl TuningFile {
    /// The file for a model on a machine with this many processors to use.
    pub(super) fn new(models_dir: &Path, weights: &Weights, threads: ThreadChoice) -> Self {
        let processors = format!("{threads:?}");
        let parts = [ENGINE, &weights.file.sha256, &processors].map(str::as_bytes);
        let name = format!("{}-{}.tuning.json", weights.name, digest(parts));
        Self { path: models_dir.join("read").join(name) }
    }

    /// The stored values; `None` if there are none or they are not valid.
    pub(super) fn load(&self) -> Option<Tuning> {
        let stored: Tuning = serde_json::from_slice(&fs::read(&self.path).ok()?).ok()?;
        let sane = (1..=1024).contains(&stored.threads);
        (sane && BATCH_TOKENS.contains(&stored.batch_tokens)).then_some(stored)
    }

    /// Stores values. A failure only costs another measurement.
    pub(super) fn save(&self, tuning: Tuning) {
        let draft = self.path.with_extension(format!("{}.draft", std::process::id()));
        let saved = self.path.parent().map_or(Ok(()), fs::create_dir_all);
        let saved = saved.and_then(|()| fs::write(&draft, serde_json::json!(tuning).to_string()));
        if let Err(error) = saved.and_then(|()| fs::rename(&draft, &self.path)) {
            tracing::debug!(%error, "could not store the speed of a model");
            let _ = fs::remove_file(&draft);
        }
    }
}

/// The numbers of threads to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadChoice {
    /// The configured number.
    Fixed(u32),
    /// As many as there are free processors, or fewer.
    UpTo(u32),
}

impl ThreadChoice {
    /// The candidates, most threads first. A processor may be a hyperthread of a core.
    fn candidates(self) -> Vec<u32> {
        let mut candidates = match self {
            Self::Fixed(threads) => vec![threads.max(1)],
            Self::UpTo(free) => [free, free / 2, free / 4].map(|threads| threads.max(1)).to_vec(),
        };
        candidates.dedup();
        candidates
    }
}

/// Measures the fastest settings; `context` creates a context with the given ones.
pub(super) fn measure<'m, E>(
    threads: ThreadChoice,
    context: impl Fn(Tuning) -> Result<LlamaContext<'m>, E>,
) -> Result<Tuning, E> {
    let start = now();
    let candidates = threads.candidates();
    let mut best = (f64::INFINITY, Tuning::unmeasured(candidates[0]));
    for &threads in &candidates {
        if candidates.len() == 1 || start.elapsed() > MEASURE_TIMEOUT {
            break;
        }
        let tuning = Tuning::unmeasured(threads);
        let score = seconds_per_step(&mut context(tuning)?);
        best = if score < best.0 { (score, tuning) } else { best };
    }
    let threads = best.1.threads;
    let mut best = (f64::INFINITY, best.1);
    for batch_tokens in BATCH_TOKENS {
        if start.elapsed() > MEASURE_TIMEOUT {
            break;
        }
        let tuning = Tuning { threads, batch_tokens };
        let seconds = seconds_per_read(&mut context(tuning)?, batch_tokens as usize);
        best = if seconds < best.0 * WORTH_LARGER { (seconds, tuning) } else { best };
    }
    Ok(best.1)
}

/// Seconds of a step per generated token.
fn seconds_per_step(context: &mut LlamaContext<'_>) -> f64 {
    let read = evaluate(context, 0, READ_TOKENS) / READ_TOKENS as f64;
    let written: f64 = (0..WRITE_TOKENS).map(|n| evaluate(context, READ_TOKENS + n, 1)).sum();
    READ_PER_WRITTEN * read + written / WRITE_TOKENS as f64
}

/// Seconds to evaluate the largest batch in batches of this size.
fn seconds_per_read(context: &mut LlamaContext<'_>, batch: usize) -> f64 {
    let all = BATCH_TOKENS.iter().max().map_or(batch, |most| *most as usize);
    (0..all / batch).map(|n| evaluate(context, n * batch, batch)).sum()
}

/// Seconds to evaluate some tokens from a position on; infinite if that fails.
fn evaluate(context: &mut LlamaContext<'_>, position: usize, count: usize) -> f64 {
    let mut batch = LlamaBatch::new(count, 1);
    // The choice of tokens does not affect the time.
    let added = (0..count).all(|n| {
        let position = i32::try_from(position + n).unwrap_or(i32::MAX);
        batch.add(LlamaToken(n as i32 + 1), position, &[0], n + 1 == count).is_ok()
    });
    let start = now();
    let done = added && context.decode(&mut batch).is_ok();
    if done { start.elapsed().as_secs_f64() } else { f64::INFINITY }
}

#[expect(clippy::disallowed_methods, reason = "this measures compute time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests;
