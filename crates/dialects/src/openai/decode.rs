//! Decodes requests.

pub(super) mod chat;
pub(super) mod content;
pub(super) mod conversation;
pub(super) mod options;
pub(super) mod prompt;
pub(super) mod responses;
pub(super) mod senses;

use std::path::PathBuf;

use quintet_kernel::model::{ModelRef, Sampling};
use serde_json::Value;

use self::content::Part;
use super::reply::Reply;
use crate::transport::routes::{PathParameters, Refusals, Row};

/// The largest body of a request that is not audio.
pub(super) const BODY_LIMIT: usize = 32 * 1024 * 1024;
/// The model name of the agent with the default model, and the prefix for other models.
pub(super) const AGENT: &str = "quintet";

/// The route of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Models,
    /// One model; its name is the rest of the path.
    Model,
    Chat,
    Respond,
    Response(String),
    CancelResponse(String),
    DeleteResponse(String),
    InputItems(String),
    Embeddings,
    Transcriptions,
    Speech,
}

/// All routes.
pub(super) const ROUTES: &[Row<Route, Reply>] = &[
    ("GET", "/v1/models", |_| Ok(Route::Models)),
    ("GET", "/v1/models/{*model}", |_| Ok(Route::Model)),
    ("POST", "/v1/chat/completions", |_| Ok(Route::Chat)),
    ("POST", "/v1/responses", |_| Ok(Route::Respond)),
    ("GET", "/v1/responses/{id}", |path| Ok(Route::Response(id(path)))),
    ("DELETE", "/v1/responses/{id}", |path| Ok(Route::DeleteResponse(id(path)))),
    ("POST", "/v1/responses/{id}/cancel", |path| Ok(Route::CancelResponse(id(path)))),
    ("GET", "/v1/responses/{id}/input_items", |path| Ok(Route::InputItems(id(path)))),
    ("POST", "/v1/embeddings", |_| Ok(Route::Embeddings)),
    ("POST", "/v1/audio/transcriptions", |_| Ok(Route::Transcriptions)),
    ("POST", "/v1/audio/speech", |_| Ok(Route::Speech)),
];

/// The replies to all other requests.
pub(super) const REFUSALS: &Refusals<Reply> = &Refusals {
    unknown_path: |path| {
        Reply::not_found(format!("Unknown request URL: {path}")).code("unknown_url")
    },
    wrong_method: |path, allowed| {
        let why = format!("Not allowed to use this method on {path}; it allows {allowed}");
        Reply::invalid(why).status(405).code("method_not_supported")
    },
};

fn id(path: &PathParameters<'_>) -> String {
    path.get("id").into()
}

/// A request for an answer, from any of the endpoints.
#[derive(Debug)]
pub(super) struct Generation {
    /// The model's name as the client wrote it.
    pub(super) model: String,
    pub(super) target: Target,
    /// Instructions in addition to the messages.
    pub(super) instructions: Option<String>,
    pub(super) messages: Vec<Message>,
    pub(super) tools: Vec<FunctionTool>,
    /// False if the model must answer with text.
    pub(super) may_call: bool,
    pub(super) sampling: Sampling,
    /// The workspace of the agent; the configured one if not given.
    pub(super) workspace: Option<PathBuf>,
    pub(super) stream: bool,
}

/// The meaning of a model name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A provider's model, without the agent.
    Proxy(ModelRef),
    /// The agent with this model, or with the default model.
    Agent(Option<ModelRef>),
}

impl Target {
    /// Parses a model name. Fails if it is invalid.
    pub(super) fn parse(name: &str) -> Result<Self, Reply> {
        if name == AGENT {
            return Ok(Self::Agent(None));
        }
        let model = ModelRef::parse(name).ok_or_else(|| Reply::unknown_model(name))?;
        match model.provider.as_str() {
            AGENT => match ModelRef::parse(&model.model) {
                Some(model) => Ok(Self::Agent(Some(model))),
                None => Err(Reply::unknown_model(name)),
            },
            _ => Ok(Self::Proxy(model)),
        }
    }

    /// The provider's model, if one is named.
    pub(super) fn model(&self) -> Option<&ModelRef> {
        match self {
            Self::Proxy(model) => Some(model),
            Self::Agent(model) => model.as_ref(),
        }
    }
}

/// A message of the client's conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// Instructions.
    System(String),
    /// A message of the user.
    User(Vec<Part>),
    /// An earlier answer of a model.
    Assistant {
        /// The text; empty if the model only called tools.
        text: String,
        /// The calls.
        calls: Vec<Call>,
    },
    /// The result of a call.
    Result {
        /// The id of the call.
        call: String,
        /// The result.
        text: String,
    },
}

/// A call in the client's conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) tool: String,
    /// The arguments as JSON text.
    pub(super) arguments: String,
}

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FunctionTool {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: Value,
    /// True if the arguments must match the schema exactly.
    pub(super) strict: bool,
}

/// Parses a JSON body.
pub(super) fn json(body: &[u8]) -> Result<Value, Reply> {
    serde_json::from_slice(body).map_err(|error| {
        Reply::invalid(format!("We could not parse the JSON body of your request: {error}"))
            .code("invalid_json")
    })
}
