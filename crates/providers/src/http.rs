//! Connections to providers.
//!
//! Clients are built on demand: reading the platform's certificates takes milliseconds, which
//! neither the start of the daemon nor a local model over plain HTTP needs.

use std::error::Error as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use quintet_kernel::model::FailureKind;
use reqwest::{Client, ClientBuilder, Response, redirect};
use rustls::crypto::ring;
use tokio::task::JoinSet;

use crate::provider_error;
use crate::retry::AttemptError;

/// Time to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time and bytes for reading the end of a finished answer.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);
const LINGER_BYTES_LIMIT: usize = 64 << 10;

/// The clients, each shared by all providers that need it.
#[derive(Debug, Default)]
pub(crate) struct Http {
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
    lingering: Mutex<JoinSet<()>>,
}

impl Http {
    /// The client for a URL.
    pub(crate) async fn client(self: &Arc<Self>, url: &str) -> Result<Client, AttemptError> {
        let client = if !is_secure(url) {
            self.plain.get_or_init(plain).clone()
        } else if let Some(client) = self.secure.get() {
            client.clone()
        } else {
            let this = Arc::clone(self);
            let built =
                tokio::task::spawn_blocking(move || this.secure.get_or_init(secure).clone());
            built.await.unwrap_or_else(|error| Err(error.to_string()))
        };
        client.map_err(|error| provider_error::permanent(FailureKind::Unavailable, error))
    }

    /// Reads the last bytes of a finished answer in the background, so that its connection can be
    /// used again.
    pub(crate) fn linger(&self, mut response: Response) {
        let close = async move {
            let mut left = LINGER_BYTES_LIMIT;
            while let Ok(Some(bytes)) = response.chunk().await {
                left = left.saturating_sub(bytes.len());
                if left == 0 {
                    break;
                }
            }
        };
        let mut lingering = self.lingering.lock().unwrap_or_else(PoisonError::into_inner);
        while lingering.try_join_next().is_some() {}
        lingering.spawn(async move {
            let _ = tokio::time::timeout(LINGER_TIMEOUT, close).await;
        });
    }
}

fn is_secure(url: &str) -> bool {
    url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

/// A client for plain HTTP: without certificates, and without the environment's proxy, which is
/// meant for the internet and not for a model on the local network.
fn plain() -> Result<Client, String> {
    let tls = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    build(Client::builder().tls_backend_preconfigured(tls).no_proxy())
}

/// A client for HTTPS that trusts the certificates of the platform.
fn secure() -> Result<Client, String> {
    // An error means that another part of this process installed a provider first, which is fine.
    let _ = ring::default_provider().install_default();
    build(Client::builder())
}

/// Builds a client. A redirect could send the key or the prompt to another server, so it is an error.
fn build(builder: ClientBuilder) -> Result<Client, String> {
    builder
        .user_agent(concat!("quintet/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(30))
        .build()
        .map_err(|error| describe(&error))
}

/// The error of a request without an answer.
pub(crate) fn attempt_error(error: reqwest::Error) -> AttemptError {
    // The address alone: a path or a query may hold a key.
    let place = error.url().map(|url| format!(" at {}", url.origin().ascii_serialization()));
    let error = error.without_url();
    if error.is_builder() {
        let message = format!("the request cannot be made: {}", describe(&error));
        return provider_error::permanent(FailureKind::Rejected, message);
    }
    let place = place.unwrap_or_default();
    let message = format!("the provider cannot be reached{place}: {}", describe(&error));
    provider_error::transient(FailureKind::Unavailable, message)
}

/// An error with its causes; the outermost alone is not specific.
fn describe(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let mut text = error.to_string();
    for cause in causes {
        text.push_str(": ");
        text.push_str(&cause.to_string());
    }
    text
}
