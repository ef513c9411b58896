//! Requests vectors from the embedder, within time limits.

use std::time::Duration;

use quintet_kernel::port::{Embedder, SenseError};
use tokio::time::{sleep, timeout};

/// How long a search waits for the vector of its query before it ranks by words alone.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum length of an embedded text, in bytes. Models read less of it.
const TEXT_LIMIT: usize = 4096;

/// Maximum number of texts that are embedded together. A query that arrives meanwhile waits for one
/// batch.
pub(crate) const BATCH_LIMIT: usize = 16;

/// Delay before the background task retries a busy embedder, and the number of attempts.
const BUSY_DELAY: Duration = Duration::from_secs(1);
const BUSY_TRIES: u32 = 60;

/// The longest pause after a batch.
const PAUSE_LIMIT: Duration = Duration::from_secs(5);

/// The vector of a query. Fails with the reason if there is none in time.
pub(crate) async fn query(embedder: &dyn Embedder, text: &str) -> Result<Vec<f32>, String> {
    let vectors = timeout(QUERY_TIMEOUT, vectors(embedder, vec![text.to_owned()])).await;
    let vectors = vectors.map_err(|_| "the embedder did not answer in time".to_owned())?;
    let Batch { vectors, .. } = vectors.map_err(|error| error.to_string())?;
    vectors.into_iter().next().ok_or_else(|| "the embedder gave no vector".to_owned())
}

/// The vectors of a batch of texts.
pub(crate) struct Batch {
    pub(crate) vectors: Vec<Vec<f32>>,
    /// Time that the embedder took.
    worked: Duration,
}

impl Batch {
    /// Waits as long as the embedder worked, so that the background task takes at most half of its
    /// time.
    pub(crate) async fn pause(&self) {
        sleep(self.worked.min(PAUSE_LIMIT)).await;
    }
}

/// Computes the vectors of a batch of texts.
pub(crate) async fn batch(
    embedder: &dyn Embedder,
    texts: Vec<String>,
) -> Result<Batch, SenseError> {
    let mut tries = 0;
    loop {
        match vectors(embedder, texts.clone()).await {
            Err(SenseError::Busy) if tries < BUSY_TRIES => {
                tries += 1;
                sleep(BUSY_DELAY).await;
            }
            done => return done,
        }
    }
}

async fn vectors(embedder: &dyn Embedder, texts: Vec<String>) -> Result<Batch, SenseError> {
    let cut = |mut text: String| {
        text.truncate(text.floor_char_boundary(TEXT_LIMIT));
        text
    };
    let (count, dimensions) = (texts.len(), embedder.space().dimensions);
    let embeddings = embedder.embed(texts.into_iter().map(cut).collect()).await?;
    let fits = |vector: &Vec<f32>| {
        vector.len() == dimensions && vector.iter().all(|number| number.is_finite())
    };
    if embeddings.vectors.len() != count || !embeddings.vectors.iter().all(fits) {
        return Err(SenseError::Failed("the embedder gave vectors that cannot be used".into()));
    }
    let worked = Duration::try_from_secs_f64(embeddings.service_time_ms / 1000.0);
    Ok(Batch { vectors: embeddings.vectors, worked: worked.unwrap_or_default() })
}
