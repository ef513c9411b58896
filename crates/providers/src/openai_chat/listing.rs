//! The models that a provider lists itself.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Response;
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use super::client::Endpoint;

/// A list that takes longer is not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a list is good for.
const FRESH: Duration = Duration::from_secs(60);
/// How long the lack of one is.
const FRESH_FAILURE: Duration = Duration::from_secs(5);
/// The longest list that is taken.
const LONGEST: usize = 8 << 20;

/// The names as they were last heard.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    heard: Mutex<Heard>,
}

#[derive(Debug, Default)]
struct Heard {
    names: Arc<[String]>,
    until: Option<Instant>,
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
}

impl Listing {
    /// The names, asked for if they are old. Without an answer the old ones stay.
    pub(crate) async fn names(&self, endpoint: &Endpoint) -> Arc<[String]> {
        // Held while asking, so that many who want to know ask once.
        let mut heard = self.heard.lock().await;
        if heard.until.is_some_and(|until| Instant::now() < until) {
            return Arc::clone(&heard.names);
        }
        let names = timeout(PATIENCE, ask(endpoint)).await.ok().flatten();
        let fresh = if names.is_some() { FRESH } else { FRESH_FAILURE };
        heard.until = Some(Instant::now() + fresh);
        if let Some(names) = names {
            heard.names = names;
        }
        Arc::clone(&heard.names)
    }
}

async fn ask(endpoint: &Endpoint) -> Option<Arc<[String]>> {
    let request = endpoint.client().await.ok()?.get(endpoint.url("models"));
    let response = endpoint.sign(request).ok()?.send().await.ok()?;
    let body = read(response.error_for_status().ok()?).await?;
    let models: Models = serde_json::from_slice(&body).ok()?;
    Some(models.data.into_iter().map(|model| model.id).collect())
}

async fn read(mut response: Response) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.ok()? {
        body.extend_from_slice(&bytes);
        if body.len() > LONGEST {
            return None;
        }
    }
    Some(body)
}
