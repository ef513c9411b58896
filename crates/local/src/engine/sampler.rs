//! Samples the next token.

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;
use quintet_kernel::model::Sampling;

/// Low, because small models lose track easily.
const TEMPERATURE: f32 = 0.2;
const TOP_K: i32 = 20;
const TOP_P: f32 = 0.9;
/// Makes the library choose a seed.
const ANY_SEED: u32 = u32::MAX;

/// Samples tokens, within a grammar if there is one.
pub(super) struct Sampler {
    chain: LlamaSampler,
    grammar: Option<LlamaSampler>,
}

impl Sampler {
    /// A sampler without a grammar.
    pub(super) fn new(sampling: &Sampling) -> Self {
        let temperature = sampling.temperature.map_or(TEMPERATURE, |given| given as f32);
        Self { chain: chain(temperature), grammar: None }
    }

    /// A sampler that enforces a grammar.
    pub(super) fn constrained(model: &LlamaModel, grammar: &str, temperature: f64) -> Self {
        let temperature = temperature as f32;
        let grammar = LlamaSampler::grammar(model, grammar, "root");
        let grammar =
            grammar.inspect_err(|error| tracing::warn!(%error, "could not parse a grammar"));
        Self { chain: chain(temperature), grammar: grammar.ok() }
    }

    /// The next token; `None` if the grammar allows none.
    ///
    /// The grammar is first applied only to the token that would be sampled without it, because
    /// applying it to all tokens takes as long as computing one.
    pub(super) fn next(&mut self, context: &LlamaContext<'_>) -> Option<LlamaToken> {
        let Some(grammar) = &mut self.grammar else { return Some(self.chain.sample(context, -1)) };
        let all = context.token_data_array_ith(-1);
        let free = picked(all.clone(), &mut self.chain)?;
        let token = if allowed(grammar, &all, free) {
            free
        } else {
            let mut rest = all;
            grammar.apply(&mut rest);
            rest.data.retain(|token| token.logit().is_finite());
            if rest.data.is_empty() {
                return None;
            }
            picked(rest, &mut self.chain)?
        };
        // The library aborts the process on a token that the grammar does not allow.
        grammar.accept(token);
        Some(token)
    }
}

fn picked(mut tokens: LlamaTokenDataArray, chain: &mut LlamaSampler) -> Option<LlamaToken> {
    chain.apply(&mut tokens);
    tokens.selected_token()
}

fn allowed(grammar: &mut LlamaSampler, all: &LlamaTokenDataArray, token: LlamaToken) -> bool {
    let one = all.data.iter().filter(|data| data.id() == token).copied();
    let mut one = LlamaTokenDataArray::from_iter(one, false);
    grammar.apply(&mut one);
    one.data.first().is_some_and(|data| data.logit().is_finite())
}

fn chain(temperature: f32) -> LlamaSampler {
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
