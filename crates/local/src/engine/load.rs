//! Reads a model's weights.

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

/// The window of the contexts that are only measured.
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

/// Measures what is fastest here, and stores it unless others began to use the processors meanwhile.
fn measured(
    model: &LlamaModel,
    threads: ThreadChoice,
    file: &TuningFile,
) -> Result<Tuning, Failure> {
    let tuning = tuning::measure(threads, |tuning| context(model, MEASURE_WINDOW, tuning))?;
    tracing::info!(tuning.threads, tuning.batch_tokens, "the speed of a model was measured");
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

    /// What the model keeps in mind.
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
        // All sessions share the room, and what they have in common is there once.
        .with_kv_unified(true)
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let context = model.new_context(backend()?, params);
    context.map_err(|error| unavailable(format!("no memory for a context: {error}")))
}

/// The library's own state, set up once for the whole process.
pub(super) fn backend() -> Result<&'static LlamaBackend, Failure> {
    static BACKEND: OnceLock<Result<LlamaBackend, String>> = OnceLock::new();
    let init = || {
        let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
        backend.void_logs();
        Ok(backend)
    };
    BACKEND.get_or_init(init).as_ref().map_err(unavailable)
}

/// How many processors nobody else uses at this moment, at least one. The threads of a model wait for each
/// other many times a token, so that one that has to share its processor holds up all: on two processors with
/// eight others at work, two threads wrote 0.7 tokens a second where one wrote 5.
fn free_processors() -> u32 {
    let all = available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok());
    let running = |text: String| text.split(['/', ' ']).nth(3)?.parse::<u32>().ok();
    let running = std::fs::read_to_string("/proc/loadavg").ok().and_then(running);
    // One of those that run is this thread.
    let busy = running.unwrap_or(1).saturating_sub(1);
    all.unwrap_or(1).saturating_sub(busy).max(1)
}

/// The kernels are compiled for processors of the last ten years; an older one would be killed by an
/// instruction it does not know.
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
