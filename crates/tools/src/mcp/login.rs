//! Logins at servers over HTTP (OAuth): how a person's login is made, kept, used and renewed.
//!
//! Tokens are read from the [`LoginStore`] for every request, so that a logout counts at once, and renewed
//! under its lock, so that two processes never spend the same refresh token.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use quintet_kernel::port::{BoxFuture, ToolServer, ToolTransport};
use reqwest::Url;
use rmcp::transport::AuthClient;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession,
    CredentialRefreshGuard, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use serde::{Deserialize, Serialize};

use super::http::install_tls;

/// The name that authorization servers show to the person.
const CLIENT_NAME: &str = "Quintet";

/// What a login is for: tokens of one server are never sent to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginKey {
    /// The server's configured name.
    pub name: String,
    /// The server's address.
    pub url: String,
}

impl LoginKey {
    /// The login of a server; none for a process, or for a server that has its token in a header.
    pub fn of(server: &ToolServer) -> Option<Self> {
        let ToolTransport::Http { url, headers } = &server.transport else { return None };
        let own = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
        (!own).then(|| Self { name: server.name.clone(), url: url.clone() })
    }
}

/// Where logins are kept. What is kept is a secret.
pub trait LoginStore: Send + Sync {
    /// What is kept of a login. Fails if it cannot be read.
    fn load<'a>(&'a self, key: &'a LoginKey) -> BoxFuture<'a, Result<Option<String>, String>>;
    /// Keeps a login, durably, in place of the one that is there. Fails if it cannot be written.
    fn save<'a>(&'a self, key: &'a LoginKey, text: String) -> BoxFuture<'a, Result<(), String>>;
    /// Removes a login; true if there was one. Fails if it cannot be removed.
    fn remove<'a>(&'a self, key: &'a LoginKey) -> BoxFuture<'a, Result<bool, String>>;
    /// Waits until no other process renews this login; whoever holds the result is the one that may.
    fn lock<'a>(&'a self, key: &'a LoginKey) -> BoxFuture<'a, Result<Box<dyn Send>, String>>;
    /// When the login was written last; none if there is none. Must return at once.
    fn written(&self, key: &LoginKey) -> Option<SystemTime>;
}

/// How a person wants to log in.
#[derive(Clone, Debug, Default)]
pub struct LoginRequest {
    /// Where the browser is sent afterwards.
    pub redirect_uri: String,
    /// The client that the person registered with the authorization server. Without it one is registered.
    pub client_id: Option<String>,
    /// The secret of that client, if it has one.
    pub client_secret: Option<String>,
    /// The permissions to ask for. Without any the server says what it needs.
    pub scopes: Vec<String>,
}

/// What is kept of a login.
#[derive(Serialize, Deserialize)]
struct Login {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    credentials: StoredCredentials,
}

/// A login that waits for the person.
pub struct PendingLogin {
    session: AuthorizationSession,
    state: String,
    key: LoginKey,
    store: Arc<dyn LoginStore>,
}

impl std::fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PendingLogin")
    }
}

impl PendingLogin {
    /// Finds the authorization server and registers with it, if need be. Fails with the reason.
    pub async fn begin(
        key: &LoginKey,
        request: LoginRequest,
        store: Arc<dyn LoginStore>,
    ) -> Result<Self, String> {
        let mut manager = manager(&key.url).await?;
        let resolution = manager.resolve_metadata().await.map_err(|error| explain(&error))?;
        let published = resolution.source.is_discovered();
        manager.set_metadata(resolution.metadata);
        let LoginRequest { redirect_uri, client_id, client_secret, scopes } = request;
        let scopes =
            if scopes.is_empty() { manager.select_initial_scopes(&[]).await } else { scopes };
        let (client_id, client_secret) = if let Some(id) = client_id {
            (id, client_secret)
        } else {
            let names: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let registered = manager.register_client(CLIENT_NAME, &redirect_uri, &names).await;
            let client = registered.map_err(|error| not_registered(&error, published))?;
            (client.client_id, client.client_secret)
        };
        manager.set_credential_store(Tokens {
            store: Arc::clone(&store),
            key: key.clone(),
            client_secret: client_secret.clone(),
        });
        let mut request = AuthorizationRequest::new(redirect_uri)
            .with_preregistered_client(client_id)
            .with_scopes(scopes)
            .with_initial_scope_selection();
        if let Some(secret) = client_secret {
            request = request.with_client_secret(secret);
        }
        let session = AuthorizationSession::new(manager, request).await;
        let session = session.map_err(|(_, error)| explain(&error))?;
        let state = parameter(session.get_authorization_url(), "state");
        let state = state.ok_or("the address to log in at has no state")?;
        Ok(Self { session, state, key: key.clone(), store })
    }

    /// The address that the person opens in a browser.
    pub fn url(&self) -> &str {
        self.session.get_authorization_url()
    }

    /// True if the browser was sent to this address because of this login.
    pub fn is_answered_by(&self, redirect: &str) -> bool {
        parameter(redirect, "state").is_some_and(|state| state == self.state)
    }

    /// Fetches and keeps the tokens, after the browser was sent to this address. Fails with the reason.
    pub async fn finish(self, redirect: &str) -> Result<(), String> {
        if let Some(error) = parameter(redirect, "error") {
            let why = parameter(redirect, "error_description").map(|why| format!(" ({why})"));
            return Err(format!("the login was refused: {error}{}", why.unwrap_or_default()));
        }
        let _lock = self.store.lock(&self.key).await?;
        let finished = self.session.handle_callback_url(redirect).await;
        finished.map(drop).map_err(|error| explain(&error))
    }
}

/// A client that sends the token of a login with every request; none if nobody logged in. Fails if the login
/// cannot be used.
pub(super) async fn authorized(
    client: &reqwest::Client,
    key: &LoginKey,
    store: Arc<dyn LoginStore>,
) -> Result<Option<AuthClient<reqwest::Client>>, NoLogin> {
    let Some(text) = store.load(key).await.map_err(NoLogin::Unusable)? else { return Ok(None) };
    let Ok(Login { client_secret, credentials }) = serde_json::from_str::<Login>(&text) else {
        return Err(NoLogin::Needed);
    };
    let mut manager = manager(&key.url).await.map_err(NoLogin::Unusable)?;
    let resolution = manager.resolve_metadata().await;
    let resolution = resolution.map_err(|error| NoLogin::Unusable(explain(&error)))?;
    // A refresh token goes to the authorization server that gave it, and to no other.
    if credentials.issuer.is_some() {
        if !resolution.source.is_discovered() {
            let why = "its authorization server cannot be found";
            return Err(NoLogin::Unusable(why.to_owned()));
        }
        if resolution.metadata.issuer != credentials.issuer {
            return Err(NoLogin::Needed);
        }
    }
    manager.set_metadata(resolution.metadata);
    let mut config = OAuthClientConfig::new(credentials.client_id, &key.url);
    if let Some(secret) = &client_secret {
        config = config.with_client_secret(secret);
    }
    let configured = manager.configure_client(config);
    configured.map_err(|error| NoLogin::Unusable(explain(&error)))?;
    manager.set_credential_store(Tokens { store, key: key.clone(), client_secret });
    Ok(Some(AuthClient::new(client.clone(), manager)))
}

/// Why there is no login to use.
#[derive(Debug)]
pub(super) enum NoLogin {
    /// The person has to log in again.
    Needed,
    /// What is there cannot be used now.
    Unusable(String),
}

async fn manager(url: &str) -> Result<AuthorizationManager, String> {
    install_tls();
    // A company's servers are at private addresses, and a person named this one.
    let manager = AuthorizationManager::new_allowing_private_addresses(url).await;
    manager.map_err(|error| explain(&error))
}

/// The login of one server, as the OAuth client reads and writes it.
struct Tokens {
    store: Arc<dyn LoginStore>,
    key: LoginKey,
    client_secret: Option<String>,
}

#[async_trait]
impl CredentialStore for Tokens {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let text = self.store.load(&self.key).await.map_err(AuthError::CredentialStoreError)?;
        let read = |text: String| serde_json::from_str::<Login>(&text);
        let login = text.map(read).transpose();
        let login = login.map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        Ok(login.map(|login| login.credentials))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let login = Login { client_secret: self.client_secret.clone(), credentials };
        let text = serde_json::to_string(&login);
        let text = text.map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        self.store.save(&self.key, text).await.map_err(AuthError::CredentialStoreError)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        let removed = self.store.remove(&self.key).await;
        removed.map(drop).map_err(AuthError::CredentialStoreError)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        let lock = self.store.lock(&self.key).await.map_err(AuthError::CredentialStoreError)?;
        Ok(Some(CredentialRefreshGuard::new(lock)))
    }
}

fn parameter(url: &str, name: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let found = url.query_pairs().find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

fn not_registered(error: &AuthError, published: bool) -> String {
    if published {
        let hint = "register a client with it and set `oauth.client_id` of the server";
        format!("{}; {hint}", explain(error))
    } else {
        "the server offers no OAuth login: it publishes no OAuth metadata".to_owned()
    }
}

fn explain(error: &AuthError) -> String {
    super::connection::innermost(error)
}
