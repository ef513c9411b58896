//! Requests and answers of embedding services.

use serde::{Deserialize, Serialize};

/// The kind of embedding service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Service {
    /// `POST /embeddings` of the OpenAI API.
    OpenAi {
        /// Dimensions to request, if not those of the model.
        dimensions: Option<usize>,
    },
    /// `POST /embed` of another daemon.
    Internal,
}

/// Vectors, and the times that the service measured.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) vectors: Vec<Vec<f32>>,
    pub(super) queue_wait_ms: Option<f64>,
    pub(super) service_time_ms: Option<f64>,
}

#[derive(Serialize)]
struct OpenAiRequest<'a> {
    model: &'a str,
    input: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    dimensions: Option<usize>,
}

#[derive(Serialize)]
struct InternalRequest<'a> {
    texts: &'a [String],
}

#[derive(Deserialize)]
struct OpenAiAnswer {
    data: Vec<OpenAiVector>,
}

#[derive(Deserialize)]
struct OpenAiVector {
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct InternalAnswer {
    embeddings: Vec<Vec<f32>>,
    queue_wait_ms: Option<f64>,
    service_time_ms: Option<f64>,
}

impl Service {
    /// Limits: texts per request, characters per text, characters per request.
    fn limits(self) -> (usize, usize, usize) {
        match self {
            Self::OpenAi { .. } => (128, 32_768, 262_144),
            Self::Internal => (256, 8192, 65_536),
        }
    }

    /// Makes a text acceptable to the service: not empty and not too long.
    pub(super) fn fit(self, mut text: String) -> String {
        let (_, limit, _) = self.limits();
        if let Some((end, _)) = text.char_indices().nth(limit) {
            text.truncate(end);
        }
        if text.is_empty() { " ".into() } else { text }
    }

    /// The number of texts from the front of the list that go into one request.
    pub(super) fn batch_length(self, texts: &[String]) -> usize {
        let (count, _, total) = self.limits();
        let mut characters = 0;
        let fits = |text: &&String| {
            characters += text.chars().count();
            characters <= total
        };
        texts.iter().take(count).take_while(fits).count().max(1)
    }

    pub(super) fn body(self, model: &str, texts: &[String]) -> Vec<u8> {
        let written = match self {
            Self::OpenAi { dimensions } => {
                serde_json::to_vec(&OpenAiRequest { model, input: texts, dimensions })
            }
            Self::Internal => serde_json::to_vec(&InternalRequest { texts }),
        };
        written.expect("strings and numbers are JSON")
    }

    /// Reads the vectors; they are normalised. Fails with the reason if they are not what was
    /// requested.
    pub(super) fn answer(
        self,
        body: &[u8],
        count: usize,
        dimensions: usize,
    ) -> Result<Answer, String> {
        let unreadable =
            |error: serde_json::Error| format!("the embedding service's answer: {error}");
        let (vectors, queue_wait_ms, service_time_ms) = match self {
            Self::OpenAi { .. } => {
                let mut data =
                    serde_json::from_slice::<OpenAiAnswer>(body).map_err(unreadable)?.data;
                data.sort_by_key(|vector| vector.index);
                (data.into_iter().map(|vector| vector.embedding).collect(), None, None)
            }
            Self::Internal => {
                let answer: InternalAnswer = serde_json::from_slice(body).map_err(unreadable)?;
                (answer.embeddings, answer.queue_wait_ms, answer.service_time_ms)
            }
        };
        let vectors: Vec<Vec<f32>> = vectors;
        if vectors.len() != count {
            return Err(format!("the embedding service sent {} of {count} vectors", vectors.len()));
        }
        let vectors = vectors.into_iter().map(|vector| normalized(vector, dimensions));
        Ok(Answer { vectors: vectors.collect::<Result<_, _>>()?, queue_wait_ms, service_time_ms })
    }
}

fn normalized(mut vector: Vec<f32>, dimensions: usize) -> Result<Vec<f32>, String> {
    if vector.len() != dimensions {
        return Err(format!(
            "the embedding service sent vectors of {} dimensions instead of {dimensions}",
            vector.len()
        ));
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return Err("the embedding service sent a vector with invalid numbers".into());
    }
    vector.iter_mut().for_each(|x| *x /= length);
    Ok(vector)
}

/// The beginning of an answer that explains an error, if it has one.
pub(super) fn readable(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(400)]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() { text } else { format!(": {text}") }
}
