//! Requests to models and their responses, independent of any provider's API.

mod catalog;
mod failure;
mod request;
mod response;
mod token_count;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use catalog::{Latency, ModelDetails, ModelInfo, ModelLocation, Price, Profile, SearchSupport};
pub use failure::{Failure, FailureKind};
pub use request::{
    Account, AssistantPart, Constraints, Effort, ImageDetail, OutputFormat, Prompt, PromptCall,
    PromptMessage, PromptPart, Sampling, ToolChoice, WebSearch, assistant_calls, assistant_text,
};
pub use response::{
    Channel, Chunk, FinishReason, ModelResponse, RawToolCall, SealPosition, Sealed, Usage,
};
pub use token_count::TokenCount;

/// A model by provider and name, written `provider/model`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ModelRef {
    /// A provider of the configuration.
    pub provider: String,
    /// The model's name there; may contain slashes itself.
    pub model: String,
}

impl ModelRef {
    /// Reads `provider/model`.
    pub fn parse(text: &str) -> Option<Self> {
        let (provider, model) = text.split_once('/')?;
        let whole = !provider.is_empty() && !model.is_empty();
        whole.then(|| Self { provider: provider.into(), model: model.into() })
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

impl From<ModelRef> for String {
    fn from(model: ModelRef) -> Self {
        model.to_string()
    }
}

impl TryFrom<String> for ModelRef {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("{text:?} is not of the form provider/model"))
    }
}
