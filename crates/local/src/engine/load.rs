//! Loads the weights of a model.

use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::thread::available_parallelism;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use quintet_kernel::model::{Failure, FailureKind};

use super::prefix_cache::PrefixCache;
use super::slots::SLOTS;
use super::tuning::{self, ThreadChoice, Tuning, TuningFile};
use super::{Settings, unavailable};
use crate::weights::Weights;

/// The context window of measurements.
const MEASURE_WINDOW: u32 = 256;

/// A model in memory.
pub(super) struct Loaded {
    model: LlamaModel,
    prefix_cache: PrefixCache,
    window: u32,
    tuning: Tuning,
}

pub(super) fn load(settings: &Settings, weights: &Weights) -> Result<Loaded, Failure> {
    let path = settings.models_dir.join(&weights.file.name);
    if !path.is_file() {
        let kind = FailureKind::UnknownModel;
        let name = &weights.name;
        let message = format!(
            "the weights of {name} are not here: fetch them with `quintet models pull {name}`"
        );
        return Err(Failure { kind, message });
    }
    if let Some(lack) = missing_instructions() {
        return Err(unavailable(format!("this processor lacks {lack}, which local models need")));
    }
    let free_before = free_processors();
    let model = LlamaModel::load_from_file(backend()?, &path, &LlamaModelParams::default())
        .map_err(|error| unavailable(format!("{} cannot be loaded: {error}", path.display())))?;
    let free = free_before.max(free_processors());
    let threads = settings.threads.map_or(ThreadChoice::UpTo(free), ThreadChoice::Fixed);
    let window = settings.window.min(weights.context);
    let prefix_cache = PrefixCache::new(&settings.models_dir, weights);
    let tuning_file = TuningFile::new(&settings.models_dir, weights, threads);
    let tuning = match tuning_file.load() {
        Some(tuning) => tuning,
        None => measured(&model, threads, &tuning_file)?,
    };
    Ok(Loaded { model, prefix_cache, window, tuning })
}

/// Measures the fastest settings, and stores them unless other processes started to use the
/// processors meanwhile.
fn measured(
    model: &LlamaModel,
    threads: ThreadChoice,
    file: &TuningFile,
) -> Result<Tuning, Failure> {
    let tuning = tuning::measure(threads, |tuning| context(model, MEASURE_WINDOW, tuning))?;
    tracing::info!(tuning.threads, tuning.batch_tokens, "measured the speed of a model");
    let undisturbed = match threads {
        ThreadChoice::Fixed(_) => true,
        ThreadChoice::UpTo(free) => free_processors() >= free,
    };
    if undisturbed {
        file.save(tuning);
    }
    Ok(tuning)
}

impl Loaded {
    pub(super) fn model(&self) -> &LlamaModel {
        &self.model
    }

    pub(super) fn prefix_cache(&self) -> &PrefixCache {
        &self.prefix_cache
    }

    /// Tokens that are evaluated at once. A cancelled job ends after one batch at most.
    pub(super) fn batch_tokens(&self) -> usize {
        self.tuning.batch_tokens as usize
    }

    /// Creates a context: the KV cache of the model.
    pub(super) fn context(&self) -> Result<LlamaContext<'_>, Failure> {
        context(&self.model, self.window, self.tuning)
    }
}

fn context(model: &LlamaModel, window: u32, tuning: Tuning) -> Result<LlamaContext<'_>, Failure> {
    let threads = i32::try_from(tuning.threads).unwrap_or(1);
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(window))
        .with_n_batch(tuning.batch_tokens)
        .with_n_ubatch(tuning.batch_tokens)
        .with_n_seq_max(SLOTS as u32)
        // All sessions share the KV cache, and shared prefixes are stored once.
        .with_kv_unified(true)
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let context = model.new_context(backend()?, params);
    context.map_err(|error| unavailable(format!("no memory for a context: {error}")))
}

/// The global state of the library, initialized once per process.
pub(super) fn backend() -> Result<&'static LlamaBackend, Failure> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let init = || {
        let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
        backend.void_logs();
        Ok(backend)
    };
    BACKEND.get_or_init(init).as_ref().map_err(unavailable)
}

/// Number of processors that are idle at this moment, at least one. The threads of a model wait for
/// each other many times per token, so one that shares its processor delays all of them: on two
/// processors with eight other busy threads, two threads generated 0.7 tokens per second where one
/// generated 5.
fn free_processors() -> u32 {
    let all = available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok());
    let running = |text: String| text.split(['/', ' ']).nth(3)?.parse::<u32>().ok();
    let running = std::fs::read_to_string("/proc/loadavg").ok().and_then(running);
    // One of the running threads is this one.
    let busy = running.unwrap_or(1).saturating_sub(1);
    all.unwrap_or(1).saturating_sub(busy).max(1)
}

/// The kernels are compiled for processors of the last ten years; an older one would crash with an
/// illegal instruction.
#[cfg(target_arch = "x86_64")]
fn missing_instructions() -> Option<&'static str> {
    let there = [
        ("AVX2", is_x86_feature_detected!("avx2")),
        ("FMA", is_x86_feature_detected!("fma")),
        ("F16C", is_x86_feature_detected!("f16c")),
        ("BMI2", is_x86_feature_detected!("bmi2")),
    ];
    there.into_iter().find(|(_, there)| !there).map(|(name, _)| name)
}

#[cfg(not(target_arch = "x86_64"))]
fn missing_instructions() -> Option<&'static str> {
    None
}
