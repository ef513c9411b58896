//! The models that a provider lists itself.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use reqwest::Response;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

use crate::endpoint::Endpoint;

/// A list that takes longer is not worth waiting for.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a list is good for.
const FRESH: Duration = Duration::from_secs(60);
/// How long the lack of one is.
const FRESH_FAILURE: Duration = Duration::from_secs(5);
/// The longest list that is taken.
const LONGEST: usize = 8 << 20;

/// A model that a provider lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The provider's name for the model.
    pub(crate) id: String,
    /// The name for people.
    pub(crate) label: Option<String>,
    /// Tokens it can read at once.
    pub(crate) context_window: Option<u64>,
    /// The most tokens it writes at once.
    pub(crate) max_output: Option<u64>,
}

/// The models as they were last heard of.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Until when they need not be asked for again. Locked while somebody asks, so that many who
    /// want to know ask once.
    until: Mutex<Option<Instant>>,
    heard: RwLock<Heard>,
}

/// What a provider said when it was last asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) models: Arc<[Found]>,
    pub(crate) answered: Answered,
}

/// How a provider took the question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answered {
    /// Not at all.
    #[default]
    No,
    /// The provider refuses the key.
    Denied,
    /// Somehow: not every server has a list.
    Yes,
}

impl Listing {
    /// What was heard last, without asking.
    pub(crate) fn heard(&self) -> Heard {
        self.heard.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A model that was heard of.
    pub(crate) fn find(&self, id: &str) -> Option<Found> {
        let heard = self.heard.read().unwrap_or_else(PoisonError::into_inner);
        heard.models.iter().find(|found| found.id == id).cloned()
    }

    /// The models, asked for if what was heard is old. Without an answer the old ones stay.
    pub(crate) async fn ask(&self, endpoint: &Endpoint) -> Heard {
        let mut until = self.until.lock().await;
        if until.is_none_or(|until| Instant::now() >= until) {
            let asked = timeout(LIST_TIMEOUT, ask(endpoint)).await.ok().flatten();
            let (answered, models) = asked.unwrap_or((Answered::No, None));
            let fresh = if models.is_some() { FRESH } else { FRESH_FAILURE };
            *until = Some(Instant::now() + fresh);
            let mut heard = self.heard.write().unwrap_or_else(PoisonError::into_inner);
            heard.answered = answered;
            if let Some(models) = models {
                heard.models = models.into();
            }
        }
        drop(until);
        self.heard()
    }
}

async fn ask(endpoint: &Endpoint) -> Option<(Answered, Option<Vec<Found>>)> {
    let request = endpoint.client().await.ok()?.get(endpoint.url(endpoint.family.list_path()));
    let response =
        endpoint.sign(request, endpoint.config.api_key.as_ref()).ok()?.send().await.ok()?;
    match response.status().as_u16() {
        200 => {
            let body = read(response).await?;
            Some((Answered::Yes, endpoint.family.listed(&body)))
        }
        401 | 403 => Some((Answered::Denied, None)),
        _ => Some((Answered::Yes, None)),
    }
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
