//! Evaluates a prompt and generates an answer, token by token.

use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::vocab::LlamaVocab;
use quintet_kernel::model::{
    Channel, Chunk, Failure, FailureKind, FinishReason, ModelResponse, RawToolCall, Usage,
};
use serde_json::Value;

use super::answer_history::AnswerHistory;
use super::load::Loaded;
use super::prefix_cache::PrefixCache;
use super::repetition::is_repetition;
use super::sampler::Sampler;
use super::slots::{Place, Slots};
use super::text::Utf8Decoder;
use super::{Job, unavailable};
use crate::chat::small::{Help, NUDGE};
use crate::chat::{Piece, Reader, interjection};

/// Default limit of an answer.
const ANSWER_TOKENS_LIMIT: u64 = 2048;
/// Limit of an answer of a small model: longer ones are not useful.
const SMALL_ANSWER_TOKENS_LIMIT: u64 = 1024;

/// Why generation stopped early.
pub(super) enum Stop {
    /// The client disconnected.
    Gone,
    /// The answer cannot be generated.
    Failed(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// A model with its context.
pub(super) struct Writer<'m> {
    model: &'m LlamaModel,
    vocab: LlamaVocab<'m>,
    prefix_cache: &'m PrefixCache,
    context: LlamaContext<'m>,
    batch: LlamaBatch<'static>,
    batch_tokens: usize,
    slots: Slots,
    answer_history: AnswerHistory,
}

/// A generated answer.
struct Written {
    text: String,
    tokens: Vec<LlamaToken>,
    calls: Vec<RawToolCall>,
    finish: FinishReason,
    /// True if the model had to be reminded.
    nudged: bool,
    /// True if the calls differ from what the model generated.
    corrected: bool,
}

/// The form of an answer.
#[derive(Clone, Copy)]
enum Form {
    /// As the job requests.
    Usual,
    /// Any call.
    Call,
}

impl Written {
    /// The answer with small mistakes of its calls corrected.
    fn corrected(mut self, help: &Help) -> Self {
        // A small model that makes several calls at once repeats itself.
        self.corrected |= self.calls.len() > 1;
        self.calls.truncate(1);
        for call in &mut self.calls {
            let better = help.repair(call.clone());
            self.corrected |= !is_same(call, &better);
            *call = better;
        }
        self
    }
}

/// True if two calls are equal, however they are written.
fn is_same(one: &RawToolCall, other: &RawToolCall) -> bool {
    let input = |call: &RawToolCall| serde_json::from_str::<Value>(&call.arguments).ok();
    one.tool == other.tool && input(one) == input(other)
}

impl<'m> Writer<'m> {
    pub(super) fn new(loaded: &'m Loaded) -> Result<Self, Failure> {
        Ok(Self {
            model: loaded.model(),
            vocab: loaded.model().vocab(),
            prefix_cache: loaded.prefix_cache(),
            context: loaded.context()?,
            batch: LlamaBatch::new(loaded.batch_tokens(), 1),
            batch_tokens: loaded.batch_tokens(),
            slots: Slots::default(),
            answer_history: AnswerHistory::default(),
        })
    }

    /// Generates an answer; `gone` returns true once the client has disconnected.
    pub(super) fn answer(
        &mut self,
        job: &Job,
        gone: &dyn Fn() -> bool,
    ) -> Result<ModelResponse, Stop> {
        if gone() {
            return Err(Stop::Gone);
        }
        let shared = self.tokens(&job.prompt.shared);
        let prompt = [shared.clone(), self.tokens(&job.prompt.own)].concat();
        let window = self.context.n_ctx() as usize;
        if prompt.len() >= window {
            return Err(overflow(prompt.len(), window).into());
        }
        let mut place = self.prepare_slot(&prompt)?;
        if place.known < shared.len() {
            place.known = self.share(place, &shared, gone)?;
        }
        let fresh = self.slots.len(place.slot);
        self.read(place.slot, &prompt[fresh..], gone)?;
        let mut written = self.write(place.slot, job, Form::Usual, gone)?;
        if let Some(help) = &job.help {
            written = self.remind(place.slot, job, (help, written), gone)?.corrected(help);
        }
        let usage = Usage {
            input: prompt.len() as u64,
            output: written.tokens.len() as u64,
            cached: place.known as u64,
            ..Usage::default()
        };
        // A corrected answer is evaluated again in its corrected form.
        let tokens = if written.corrected { Vec::new() } else { written.tokens };
        self.answer_history.remember(written.text, &written.calls, (tokens, written.nudged));
        Ok(ModelResponse::new(written.finish, written.calls, usage))
    }

    fn tokens(&self, prompt: &[Piece]) -> Vec<LlamaToken> {
        let tokens = |piece: &Piece| match piece {
            Piece::Mark(mark) => self.vocab.tokenize(mark.as_bytes(), false, true),
            Piece::Plain(text) => self.vocab.tokenize(text.as_bytes(), false, false),
            Piece::AnswerHistory { text, calls, written } => {
                match self.answer_history.recall(text, calls) {
                    Some(tokens) => tokens.to_vec(),
                    None => self.vocab.tokenize(written.as_bytes(), false, false),
                }
            }
        };
        prompt.iter().flat_map(tokens).collect()
    }

    /// Finds a slot for the prompt and truncates it to the common prefix.
    fn prepare_slot(&mut self, prompt: &[LlamaToken]) -> Result<Place, Failure> {
        let place = self.slots.place(prompt);
        let confused = |_| unavailable("the model's memory does not take this prompt");
        let (slot, known) = (place.slot as u32, place.known as u32);
        if place.slot == place.like {
            self.context.clear_kv_cache_seq(Some(slot), Some(known), None).map_err(confused)?;
        } else {
            self.context.clear_kv_cache_seq(Some(slot), None, None).map_err(confused)?;
            let (like, slot) = (place.like as i32, place.slot as i32);
            self.context.copy_kv_cache_seq(like, slot, Some(0), Some(known)).map_err(confused)?;
        }
        Ok(place)
    }

    /// Loads the shared prefix from the prefix cache, or evaluates and stores it. Returns the
    /// number of tokens that were known.
    fn share(
        &mut self,
        place: Place,
        shared: &[LlamaToken],
        gone: &dyn Fn() -> bool,
    ) -> Result<usize, Stop> {
        let known = match self.prefix_cache.take(&mut self.context, place.slot, shared) {
            Some(known) => known,
            None => place.known,
        };
        self.slots.set(place.slot, &shared[..known]);
        if known < shared.len() {
            self.read(place.slot, &shared[known..], gone)?;
            self.prefix_cache.put(&self.context, place.slot, shared);
        }
        Ok(known)
    }

    /// Evaluates tokens.
    fn read(
        &mut self,
        slot: usize,
        tokens: &[LlamaToken],
        gone: &dyn Fn() -> bool,
    ) -> Result<(), Stop> {
        for some in tokens.chunks(self.batch_tokens) {
            if gone() {
                return Err(Stop::Gone);
            }
            if !self.decode(slot, some)? {
                let window = self.context.n_ctx() as usize;
                return Err(overflow(self.slots.len(slot) + tokens.len(), window).into());
            }
        }
        Ok(())
    }

    /// Reminds the model to make a change that an answer only describes; if the answer shows the
    /// code, the edit is made from it.
    fn remind(
        &mut self,
        slot: usize,
        job: &Job,
        (help, written): (&Help, Written),
        gone: &dyn Fn() -> bool,
    ) -> Result<Written, Stop> {
        let nudged = self.was_nudged(job, help);
        let wants_code = help.wants_code();
        if !written.calls.is_empty() || !help.lacks_change() || (nudged && !wants_code) {
            return Ok(written);
        }
        let finish = FinishReason::ToolCalls;
        if let Some(edit) = help.shown_edit(&written.text) {
            let calls = vec![edit];
            return Ok(Written { calls, finish, nudged: !wants_code, corrected: true, ..written });
        }
        if nudged {
            return Ok(written);
        }
        let nudge = self.tokens(&interjection(NUDGE));
        if self.slots.len(slot) + nudge.len() >= self.context.n_ctx() as usize {
            return Ok(written);
        }
        self.read(slot, &nudge, gone)?;
        let second = self.write(slot, job, Form::Call, gone)?;
        let tokens = [written.tokens, nudge, second.tokens].concat();
        let text = [written.text, second.text].concat();
        Ok(Written { text, tokens, nudged: true, ..second })
    }

    /// True if the model was already reminded in this turn.
    fn was_nudged(&self, job: &Job, help: &Help) -> bool {
        let answers = job.prompt.own.iter().rev().filter_map(|piece| match piece {
            Piece::AnswerHistory { text, calls, .. } => Some((text, calls)),
            Piece::Mark(_) | Piece::Plain(_) => None,
        });
        answers.take(help.steps()).any(|(text, calls)| self.answer_history.nudged(text, calls))
    }

    fn write(
        &mut self,
        slot: usize,
        job: &Job,
        form: Form,
        gone: &dyn Fn() -> bool,
    ) -> Result<Written, Stop> {
        let room = (self.context.n_ctx() as usize).saturating_sub(self.slots.len(slot));
        let usual =
            if job.help.is_some() { SMALL_ANSWER_TOKENS_LIMIT } else { ANSWER_TOKENS_LIMIT };
        let limit = usize::try_from(job.sampling.max_tokens.unwrap_or(usual)).unwrap_or(room);
        let limit = limit.min(room);
        let (mut sampler, mut decoder) = (self.sampler(job, form), Utf8Decoder::default());
        let mut stream =
            AnswerStream { job, reader: Reader::new(job.tools.clone()), text: String::new() };
        let mut tokens = Vec::new();
        let finish = loop {
            if gone() {
                return Err(Stop::Gone);
            }
            if tokens.len() >= limit || (job.help.is_some() && is_repetition(&tokens)) {
                break FinishReason::Length;
            }
            let Some(token) = sampler.next(&self.context) else { break FinishReason::Stop };
            if self.vocab.is_eog(token) {
                break FinishReason::Stop;
            }
            tokens.push(token);
            stream.feed(&decoder.decode(&self.vocab.token_to_piece(token, true, None)));
            if tokens.len() < limit && !self.decode(slot, &[token])? {
                break FinishReason::Length;
            }
        };
        stream.feed(&decoder.finish());
        let (text, calls) = stream.close();
        let finish = if calls.is_empty() { finish } else { FinishReason::ToolCalls };
        Ok(Written { text, tokens, calls, finish, nudged: false, corrected: false })
    }

    fn sampler(&self, job: &Job, form: Form) -> Sampler {
        let Some(help) = &job.help else { return Sampler::new(&job.sampling) };
        let grammar = match form {
            Form::Usual => help.grammar(),
            Form::Call => help.nudge_grammar(),
        };
        // A small model that must match a grammar uses a low temperature, unless it failed before.
        let temperature = job.sampling.temperature.unwrap_or_else(|| help.temperature());
        Sampler::constrained(self.model, &grammar, temperature)
    }

    /// Evaluates tokens; evicts other slots if needed. False if there was no room.
    fn decode(&mut self, slot: usize, tokens: &[LlamaToken]) -> Result<bool, Failure> {
        self.fill(slot, tokens)?;
        loop {
            match self.context.decode(&mut self.batch) {
                Ok(()) => break,
                Err(DecodeError::NoKvCacheSlot) => match self.slots.evict(slot) {
                    Some(old) => {
                        let cleared = self.context.clear_kv_cache_seq(Some(old as u32), None, None);
                        cleared.map_err(|error| unavailable(error.to_string()))?;
                    }
                    None => return Ok(false),
                },
                Err(error) => return Err(unavailable(format!("the model stumbled: {error}"))),
            }
        }
        self.slots.extend(slot, tokens);
        Ok(true)
    }

    fn fill(&mut self, slot: usize, tokens: &[LlamaToken]) -> Result<(), Failure> {
        let start = self.slots.len(slot);
        self.batch.clear();
        for (n, token) in tokens.iter().enumerate() {
            let last = n + 1 == tokens.len();
            let added = self.batch.add(*token, (start + n) as i32, &[slot as i32], last);
            added.map_err(|error| unavailable(error.to_string()))?;
        }
        Ok(())
    }
}

/// Streams the text of an answer while it is generated.
struct AnswerStream<'j> {
    job: &'j Job,
    reader: Reader,
    text: String,
}

impl AnswerStream<'_> {
    fn feed(&mut self, written: &str) {
        let text = self.reader.read(written);
        self.send(text);
    }

    fn send(&mut self, text: String) {
        if !text.is_empty() {
            self.text.push_str(&text);
            // Disconnection is checked before the next token.
            let _ = self.job.chunks.send(Ok(Chunk::Output(Channel::Text, text)));
        }
    }

    fn close(mut self) -> (String, Vec<RawToolCall>) {
        let reader = std::mem::replace(&mut self.reader, Reader::new(Vec::new()));
        let (rest, calls) = reader.finish();
        self.send(rest);
        (self.text, calls)
    }
}

fn overflow(tokens: usize, window: usize) -> Failure {
    let message = format!("the prompt is longer ({tokens} tokens) than the model reads ({window})");
    Failure { kind: FailureKind::ContextOverflow, message }
}
