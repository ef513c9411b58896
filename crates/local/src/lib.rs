//! Language models inside the daemon: on the CPU, offline, without a key.
//!
//! [`weights`] is the table of models, [`Local`] answers prompts. `chat` formats prompts and parses answers, with
//! extra help for small models; `engine` runs llama.cpp on its own threads.
//!
//! ```text
//! Prompt → chat (template, tools, grammar) → engine thread: load, prompt cache, tokens → chat::reader → Chunk, …
//! ```

mod chat;
mod engine;
mod stream;
pub mod weights;

use std::sync::Arc;

use quintet_kernel::model::{
    Chunk, Failure, FailureKind, FinishReason, Latency, ModelDetails, ModelInfo, ModelLocation,
    ModelRef, ModelResponse, Price, Profile, Prompt, PromptMessage, PromptPart, SearchSupport,
    TokenCount, Usage,
};
use quintet_kernel::port::{BoxFuture, ModelProfiles, ModelStream, Models};
use tokio::sync::mpsc::unbounded_channel;

use chat::small::Help;
use engine::{Engine, Job};
use stream::{ChunkStream, FailedStream};
use weights::Weights;

pub use engine::Settings;

/// The name of this provider.
pub const PROVIDER: &str = "local";

/// The local models of this machine.
#[derive(Clone, Debug)]
pub struct Local {
    engine: Arc<Engine>,
}

impl Local {
    /// Cheap: nothing is loaded before the first request.
    pub fn new(settings: Settings) -> Self {
        Self { engine: Arc::new(Engine::new(settings)) }
    }

    /// The models in memory.
    pub fn loaded(&self) -> Vec<&'static str> {
        self.engine.loaded()
    }

    /// Ends all threads; blocks briefly if a model is busy.
    pub fn close(&self) {
        self.engine.close();
    }

    fn listed(&self, weights: &Weights) -> ModelInfo {
        ModelInfo {
            model: ModelRef { provider: PROVIDER.into(), model: weights.name.clone() },
            profile: self.profile_of(weights),
            about: ModelDetails {
                label: weights.title.clone(),
                side: ModelLocation::Local,
                description: Some(weights.description.clone()),
                strengths: weights.strengths.clone(),
                price: Some(Price { input: 0, output: 0, cached: Some(0) }),
                latency: Some(Latency::Slow),
                ..ModelDetails::default()
            },
            usable: self.has(weights),
        }
    }

    /// The capabilities of a model with these settings.
    fn profile_of(&self, weights: &Weights) -> Profile {
        let window = self.engine.settings().window.min(weights.context);
        Profile {
            inputs: Vec::new(),
            tools: weights.tools,
            context_window: Some(window.into()),
            search: SearchSupport::Never,
        }
    }

    fn has(&self, weights: &Weights) -> bool {
        self.engine.settings().models_dir.join(&weights.file.name).is_file()
    }

    fn start(&self, prompt: &Prompt) -> Result<Box<dyn ModelStream>, Failure> {
        let name = &prompt.model.model;
        let weights = weights::find(name).ok_or_else(|| Failure {
            kind: FailureKind::UnknownModel,
            message: format!("there is no local model {name:?}"),
        })?;
        check(prompt)?;
        let offered = prompt.tools.iter().filter(|_| weights.tools && prompt.may_call);
        let offered: Vec<_> = offered.cloned().collect();
        let (chunks, receiver) = unbounded_channel();
        let help = Help::of(prompt, weights, &offered);
        if let Some(calls) = help.as_ref().and_then(Help::first_calls) {
            let answer = ModelResponse::new(FinishReason::ToolCalls, calls, Usage::default());
            // The receiver exists, so this cannot fail.
            let _ = chunks.send(Ok(Chunk::Finished(answer)));
            return Ok(Box::new(ChunkStream::new(receiver)));
        }
        let job = Job {
            prompt: chat::render(prompt, weights),
            tools: offered.iter().map(|tool| tool.name.clone()).collect(),
            sampling: prompt.sampling.clone(),
            help,
            chunks,
        };
        self.engine.submit(weights, job);
        Ok(Box::new(ChunkStream::new(receiver)))
    }
}

impl Models for Local {
    fn stream(&self, prompt: Prompt) -> Box<dyn ModelStream> {
        self.start(&prompt).unwrap_or_else(|failure| Box::new(FailedStream(failure)))
    }

    /// All models; those with weights on this machine are usable.
    fn list(&self) -> BoxFuture<'_, Vec<ModelInfo>> {
        let listed = weights::all().iter().map(|weights| self.listed(weights)).collect();
        Box::pin(std::future::ready(listed))
    }
}

impl ModelProfiles for Local {
    fn profile(&self, model: &ModelRef) -> Option<Profile> {
        weights::find(&model.model).map(|weights| self.profile_of(weights))
    }

    fn count(&self, model: &ModelRef, text: &str) -> TokenCount {
        let tokens =
            weights::find(&model.model).and_then(|weights| self.engine.count(weights, text));
        tokens.map_or_else(|| TokenCount::guess(text), |tokens| TokenCount { tokens, exact: true })
    }
}

/// The models accept only text.
fn check(prompt: &Prompt) -> Result<(), Failure> {
    let media = |part: &PromptPart| match part {
        PromptPart::Media { kind, mime, .. } if !chat::is_text(mime) => Some(*kind),
        PromptPart::Media { .. } | PromptPart::Text(_) => None,
    };
    let found = prompt.messages.iter().find_map(|message| match &**message {
        PromptMessage::User(parts) => parts.iter().find_map(media),
        PromptMessage::System(_)
        | PromptMessage::Assistant { .. }
        | PromptMessage::Result { .. } => None,
    });
    match found {
        Some(kind) => Err(Failure {
            kind: FailureKind::UnsupportedInput,
            message: format!("local models do not take {} input", kind.name()),
        }),
        None => Ok(()),
    }
}
