//! Vision by a configured model of a provider.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::BlobId;
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{
    Channel, Chunk, Failure, ModelRef, Prompt, PromptMessage, PromptPart, Sampling, WebSearch,
};
use quintet_kernel::port::{BoxFuture, Models, SenseError, Vision, VisionResult, VisualTarget};
use tokio::sync::Semaphore;

use super::answer::{CoordinateStyle, Sizes, targets};
use super::scaled::{Scaled, scaled};

/// Maximum time for an answer of the model.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum length of an answer, in bytes.
const ANSWER_LIMIT: usize = 64 * 1024;
/// Maximum number of pictures in progress or waiting; more are refused.
const REQUESTS_LIMIT: usize = 8;

const LOCATE_PROMPT: &str = "You find things on screenshots. Answer with JSON only, in this form: \
    {\"scale\": [WIDTH, HEIGHT], \"points\": [{\"x\": NUMBER, \"y\": NUMBER, \"label\": \"what it is\", \
    \"confidence\": NUMBER FROM 0 TO 1}]}. `scale` is the size of the coordinate system of `x` and `y`, \
    which are the middle of the thing, from the upper left corner. The best fit comes first. If nothing \
    fits, `points` is empty.";
const DESCRIBE_PROMPT: &str = "You describe pictures of user interfaces briefly for automation: what it is, \
    the text that can be read, the kinds of controls, and the element that one would most likely use \
    next. Plain text, no preamble.";

/// Vision through a model of a provider.
#[derive(Debug)]
pub struct ModelVision {
    models: Arc<dyn Models>,
    model: ModelRef,
    requests: Semaphore,
}

impl ModelVision {
    /// Vision by this model, which must support pictures.
    pub fn new(models: Arc<dyn Models>, model: ModelRef) -> Self {
        Self { models, model, requests: Semaphore::new(REQUESTS_LIMIT) }
    }

    async fn scale(&self, image: Vec<u8>) -> Result<Scaled, SenseError> {
        let scaled = tokio::task::spawn_blocking(move || scaled(image)).await;
        scaled.map_err(|error| SenseError::Failed(format!("scaling the picture: {error}")))?
    }

    /// Sends a picture and a question to the model; `question` receives the size of the picture that is sent.
    /// Fails if the picture cannot be read or the model does not answer.
    async fn query_model(
        &self,
        system: &str,
        question: impl FnOnce((u32, u32)) -> String,
        image: Vec<u8>,
    ) -> Result<(String, Sizes), SenseError> {
        let _permit = self.requests.try_acquire().map_err(|_| SenseError::Busy)?;
        let scaled = self.scale(image).await?;
        let sizes = Sizes { sent: scaled.sent, original: scaled.original };
        let prompt = self.prompt(system, question(scaled.sent), scaled);
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, self.answer(prompt)).await;
        let answer = answer.map_err(|_| {
            let seconds = ANSWER_TIMEOUT.as_secs();
            SenseError::Failed(format!("{} took longer than {seconds} seconds", self.model))
        })?;
        Ok((answer.map_err(|failure| self.failed(&failure))?, sizes))
    }

    fn prompt(&self, system: &str, question: String, picture: Scaled) -> Prompt {
        let picture = PromptPart::Media {
            kind: MediaKind::Image,
            name: "picture".into(),
            mime: picture.mime.into(),
            // The content is attached, so the id is not used.
            blob: BlobId::parse("none").expect("a plain word is an id"),
            content: picture.bytes.into(),
            detail: None,
        };
        Prompt {
            model: self.model.clone(),
            system: system.into(),
            messages: vec![PromptMessage::User(vec![picture, PromptPart::Text(question)]).into()],
            tools: Vec::new(),
            may_call: false,
            search: WebSearch::Off,
            sampling: Sampling { temperature: Some(0.0), ..Sampling::default() },
            account: None,
        }
    }

    async fn answer(&self, prompt: Prompt) -> Result<String, Failure> {
        let (mut stream, mut text) = (self.models.stream(prompt), String::new());
        loop {
            for chunk in stream.next().await? {
                match chunk {
                    Chunk::Output(Channel::Text, piece) => text.push_str(&piece),
                    Chunk::Finished(_) => return Ok(text),
                    Chunk::Output(Channel::Thought, _) | Chunk::Retrying { .. } => {}
                }
                if text.len() > ANSWER_LIMIT {
                    text.truncate(text.floor_char_boundary(ANSWER_LIMIT));
                    return Ok(text);
                }
            }
        }
    }

    /// Clients only get the kind of the failure: a provider's message may contain private details.
    fn failed(&self, failure: &Failure) -> SenseError {
        tracing::warn!(model = %self.model, "the vision model did not answer: {}", failure.message);
        SenseError::Failed(format!("{} failed: {}", self.model, failure.kind.name()))
    }
}

impl Vision for ModelVision {
    fn ready(&self) -> Result<(), SenseError> {
        match self.models.profile(&self.model) {
            None => Err(SenseError::Failed(format!(
                "senses.vision = {}: there is no such provider",
                self.model
            ))),
            Some(profile) if !profile.inputs.contains(&MediaKind::Image) => {
                Err(SenseError::Failed(format!(
                    "senses.vision = {}: the model takes no pictures",
                    self.model
                )))
            }
            Some(_) => Ok(()),
        }
    }

    fn locate(
        &self,
        image: Vec<u8>,
        description: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<VisionResult<Vec<VisualTarget>>, SenseError>> {
        Box::pin(async move {
            let question = |(width, height)| {
                format!(
                    "The picture is {width} pixels wide and {height} pixels high; use pixels. Find \
                     at most {limit}: {description}"
                )
            };
            let (answer, sizes) = self.query_model(LOCATE_PROMPT, question, image).await?;
            let mut value = targets(&answer, sizes, CoordinateStyle::of(&self.model.model))?;
            value.truncate(limit);
            Ok(VisionResult { value, model: self.model.to_string() })
        })
    }

    fn describe(&self, image: Vec<u8>) -> BoxFuture<'_, Result<VisionResult<String>, SenseError>> {
        Box::pin(async move {
            let question = |_| "Describe this picture.".into();
            let (answer, _) = self.query_model(DESCRIBE_PROMPT, question, image).await?;
            Ok(VisionResult { value: answer.trim().to_owned(), model: self.model.to_string() })
        })
    }
}

#[cfg(test)]
mod tests;
