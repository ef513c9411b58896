//! Servers over HTTP: the client, and refusals for want of a login.

use std::collections::{BTreeMap, HashMap};
use std::sync::Once;
use std::time::Duration;

use quintet_kernel::port::ToolServer;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::redirect;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpClientTransportConfig,
};

use super::login::LoginKey;

/// How long a connection over HTTP may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const REDIRECTS_LIMIT: usize = 5;

/// Chooses what encrypts connections, which a client has to find when it is made.
pub(super) fn install_tls() {
    static TLS: Once = Once::new();
    // An error says that somebody else in this process chose a provider first, which is as good.
    TLS.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// The client of a server over HTTP, and how it is used. Fails if a header cannot be sent.
pub(super) fn http(
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<(reqwest::Client, StreamableHttpClientTransportConfig), String> {
    install_tls();
    let mut custom = HashMap::new();
    for (name, value) in headers {
        let header = HeaderName::try_from(name.as_str());
        let header = header.map_err(|_| format!("{name:?} is no name of a header"))?;
        // The value is a secret and is not repeated.
        let value = HeaderValue::try_from(value.as_str());
        let mut value =
            value.map_err(|_| format!("the header {name} has a value with control characters"))?;
        value.set_sensitive(true);
        custom.insert(header, value);
    }
    let client = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::custom(same_origin))
        .build();
    let client = client.map_err(|error| error.to_string())?;
    Ok((client, StreamableHttpClientTransportConfig::with_uri(url).custom_headers(custom)))
}

/// Headers with secrets go to the server that they are for and to no other.
fn same_origin(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let origin = |url: &reqwest::Url| url.origin();
    let same =
        attempt.previous().first().is_some_and(|first| origin(first) == origin(attempt.url()));
    if same && attempt.previous().len() <= REDIRECTS_LIMIT {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// A refusal for want of a login.
#[derive(Debug)]
pub(super) enum Refusal {
    Login,
    /// The login has too few permissions; this one, if it is known, is needed.
    Scope(Option<String>),
}

impl Refusal {
    /// The refusal that is behind an error, if that is one.
    pub(super) fn of(error: &(dyn std::error::Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            let required = matches!(error.downcast_ref(), Some(AuthError::AuthorizationRequired));
            if required || error.is::<AuthRequiredError>() {
                return Some(Self::Login);
            }
            if let Some(scope) = error.downcast_ref::<InsufficientScopeError>() {
                return Some(Self::Scope(scope.required_scope.clone()));
            }
            next = error.source();
        }
        // A server that does not say how to log in may still know its users.
        error.to_string().contains("401 Unauthorized").then_some(Self::Login)
    }

    /// What the person can do about it.
    pub(super) fn remedy(&self, server: &ToolServer) -> String {
        let name = &server.name;
        match self {
            _ if LoginKey::of(server).is_none() => {
                "the server refuses the token in `headers` (401 or 403)".to_owned()
            }
            Self::Login => format!("needs a login: quintet mcp login {name}"),
            Self::Scope(Some(scope)) => format!(
                "the login lacks the permission {scope}: quintet mcp login {name} --scope {scope:?}"
            ),
            Self::Scope(None) => "the login lacks a permission (403)".to_owned(),
        }
    }
}
