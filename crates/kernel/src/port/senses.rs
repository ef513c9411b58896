//! Local perception: embeddings, OCR and vision.

use super::BoxFuture;

/// Why a sense could not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SenseError {
    /// The configuration turns the sense off.
    #[error("not configured: set `senses.{0}`")]
    Off(&'static str),
    /// The weights of the sense are not on this machine.
    #[error("the weights are missing: run `quintet models pull {0}`")]
    MissingWeights(&'static str),
    /// Too many requests are waiting; the request may be repeated later.
    #[error("busy: too many requests are waiting")]
    Busy,
    /// The request itself cannot be served, for example because it carries no image.
    #[error("{0}")]
    BadInput(String),
    /// The model or the service behind it failed.
    #[error("{0}")]
    Failed(String),
}

/// The vector space of an embedding model. Vectors of different spaces cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddingSpace {
    /// The source of the vectors, for example `local-sentence-transformer`.
    pub provider: String,
    /// The model, for example `sentence-transformers/all-MiniLM-L6-v2`.
    pub model: String,
    /// Numbers per vector.
    pub dimensions: usize,
}

impl EmbeddingSpace {
    /// The name under which vectors of this space are stored: `provider:model:dimensions`.
    pub fn version(&self) -> String {
        format!("{}:{}:{}", self.provider, self.model, self.dimensions)
    }
}

/// Vectors for a batch of texts, in the order of the texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Embeddings {
    /// Normalised vectors, one per text.
    pub vectors: Vec<Vec<f32>>,
    /// Milliseconds that the batch waited in the queue.
    pub queue_wait_ms: f64,
    /// Milliseconds that computing took.
    pub service_time_ms: f64,
}

/// Converts texts into vectors whose cosine measures how close their meanings are.
pub trait Embedder: Send + Sync {
    /// The space of all vectors of this embedder.
    fn space(&self) -> EmbeddingSpace;
    /// `Ok` if `embed` can work now, without loading anything.
    fn ready(&self) -> Result<(), SenseError>;
    /// Computes the vectors of a batch. Dropping the future cancels work that has not begun.
    fn embed(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Embeddings, SenseError>>;
}

/// One line of text in a picture, in pixels from the upper left corner.
#[derive(Clone, Debug, PartialEq)]
pub struct TextBox {
    /// The recognised text.
    pub text: String,
    /// The recogniser's confidence, from 0 to 1.
    pub confidence: f32,
    /// Left edge.
    pub x: u32,
    /// Upper edge.
    pub y: u32,
    /// Width.
    pub width: u32,
    /// Height.
    pub height: u32,
}

/// The text of a picture, in reading order, with the size of the picture.
#[derive(Clone, Debug, PartialEq)]
pub struct RecognizedText {
    /// Width of the picture in pixels.
    pub width: u32,
    /// Height of the picture in pixels.
    pub height: u32,
    /// The lines.
    pub lines: Vec<TextBox>,
}

/// Reads text in pictures.
pub trait Ocr: Send + Sync {
    /// `Ok` if `read` can work now, without loading anything.
    fn ready(&self) -> Result<(), SenseError>;
    /// Reads an encoded picture (PNG, JPEG, …). Dropping the future cancels work that has not begun.
    fn read(&self, image: Vec<u8>) -> BoxFuture<'_, Result<RecognizedText, SenseError>>;
}

/// A point in a picture that fits a description, in pixels from the upper left corner.
#[derive(Clone, Debug, PartialEq)]
pub struct VisualTarget {
    /// Distance from the left edge.
    pub x: u32,
    /// Distance from the upper edge.
    pub y: u32,
    /// The model's name for the target, if it gave one.
    pub label: Option<String>,
    /// The model's confidence from 0 to 1, if it gave one.
    pub confidence: Option<f32>,
}

/// A result and the model that produced it.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionResult<T> {
    /// The result.
    pub value: T,
    /// The model, or `ocr` if only the text of the picture was available.
    pub model: String,
}

/// Answers questions about pictures.
pub trait Vision: Send + Sync {
    /// `Ok` if pictures can be processed now.
    fn ready(&self) -> Result<(), SenseError>;
    /// Finds at most `limit` places that match a description, best first.
    fn locate(
        &self,
        image: Vec<u8>,
        description: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<VisionResult<Vec<VisualTarget>>, SenseError>>;
    /// Describes a picture in words.
    fn describe(&self, image: Vec<u8>) -> BoxFuture<'_, Result<VisionResult<String>, SenseError>>;
}
