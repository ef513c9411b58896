//! Picks the next token.

use llama_cpp_2::sampling::LlamaSampler;
use quintet_kernel::model::Sampling;

/// Low, because small models go astray easily.
const TEMPERATURE: f32 = 0.2;
const TOP_K: i32 = 20;
const TOP_P: f32 = 0.9;
/// Has the library choose a seed.
const ANY_SEED: u32 = u32::MAX;

pub(super) fn sampler(sampling: &Sampling) -> LlamaSampler {
    let temperature = sampling.temperature.map_or(TEMPERATURE, |given| given as f32);
    if temperature <= 0.0 {
        return LlamaSampler::greedy();
    }
    LlamaSampler::chain_simple([
        LlamaSampler::top_k(TOP_K),
        LlamaSampler::top_p(TOP_P, 1),
        LlamaSampler::temp(temperature),
        LlamaSampler::dist(ANY_SEED),
    ])
}
