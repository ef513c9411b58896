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
use super::{Settings, unavailable};
use crate::weights::Weights;

/// Tokens that are evaluated at once. A cancelled job ends after one batch at most.
pub(super) const BATCH_TOKENS: u32 = 64;

/// A model in memory.
pub(super) struct Loaded {
    model: LlamaModel,
    prefix_cache: PrefixCache,
    window: u32,
    threads: i32,
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
    let busy = busy_processors();
    let model = LlamaModel::load_from_file(backend()?, &path, &LlamaModelParams::default())
        .map_err(|error| unavailable(format!("{} cannot be loaded: {error}", path.display())))?;
    let free = processors().saturating_sub(busy.min(self::busy_processors())).max(1);
    let threads = settings.threads.unwrap_or(free);
    let window = settings.window.min(weights.context);
    let prefix_cache = PrefixCache::new(&settings.models_dir, weights);
    Ok(Loaded { model, prefix_cache, window, threads: i32::try_from(threads).unwrap_or(1) })
}

impl Loaded {
    pub(super) fn model(&self) -> &LlamaModel {
        &self.model
    }

    pub(super) fn prefix_cache(&self) -> &PrefixCache {
        &self.prefix_cache
    }

    /// What the model keeps in mind.
    pub(super) fn context(&self) -> Result<LlamaContext<'_>, Failure> {
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(self.window))
            .with_n_batch(BATCH_TOKENS)
            .with_n_ubatch(BATCH_TOKENS)
            .with_n_seq_max(SLOTS as u32)
            // All sessions share the room, and what they have in common is there once.
            .with_kv_unified(true)
            .with_n_threads(self.threads)
            .with_n_threads_batch(self.threads);
        let context = self.model.new_context(backend()?, params);
        context.map_err(|error| unavailable(format!("no memory for a context: {error}")))
    }
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

fn processors() -> u32 {
    available_parallelism().ok().and_then(|count| u32::try_from(count.get()).ok()).unwrap_or(1)
}

/// How many processors others use at this moment. The threads of a model wait for each other many
/// times a token, so that one that has to share its processor holds up all: on two processors with
/// eight others at work, two threads wrote 0.7 tokens a second where one wrote 5.
fn busy_processors() -> u32 {
    let running = |text: String| text.split(['/', ' ']).nth(3)?.parse::<u32>().ok();
    let running = std::fs::read_to_string("/proc/loadavg").ok().and_then(running);
    // One of those that run is this thread.
    running.unwrap_or(1).saturating_sub(1)
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
