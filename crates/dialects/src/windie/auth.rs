//! Authenticates clients by the tokens of their installs.
//!
//! A token is shown once, when it is issued, and only its hash is stored. A token is looked up by its hash, which
//! reveals nothing about it, and compared in constant time.

use std::time::Duration;

use axum::http::{HeaderMap, header};
use quintet_kernel::Time;
use quintet_kernel::port::{Install, StorageError};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::serve::AppState;

/// The precision of an install's last-seen time; each update is a write.
const EXACTNESS: Duration = Duration::from_secs(60);

/// A registered user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct User {
    /// The owner of the sessions and artifacts made over this connection.
    pub(super) id: String,
    /// The install that the client used.
    pub(super) install: String,
}

/// The reason why a request has no user.
#[derive(Debug)]
pub(super) enum Refused {
    /// The request has no token.
    Missing,
    /// The token is unknown or was revoked.
    Invalid,
    /// The token cannot be looked up.
    Unavailable(StorageError),
}

impl Refused {
    /// True if trying again does not help.
    pub(super) fn is_final(&self) -> bool {
        match self {
            Self::Missing | Self::Invalid => true,
            Self::Unavailable(_) => false,
        }
    }

    pub(super) fn message(&self) -> &'static str {
        match self {
            Self::Missing => "Missing install bearer token",
            Self::Invalid => "Invalid install bearer token",
            Self::Unavailable(_) => "Install auth service not available",
        }
    }
}

impl AppState {
    /// The user who sent a request; none while `install_auth` is off.
    pub(super) async fn identify(&self, headers: &HeaderMap) -> Result<Option<User>, Refused> {
        if self.settings.install_auth {
            self.authenticate(headers).await.map(Some)
        } else {
            Ok(None)
        }
    }

    /// The user who sent a request, by its token.
    pub(super) async fn authenticate(&self, headers: &HeaderMap) -> Result<User, Refused> {
        let hash = hashed(bearer(headers).ok_or(Refused::Missing)?);
        let found = self.ports.installs.find_by_token(&hash).await.map_err(Refused::Unavailable)?;
        let same = |install: &Install| install.token.as_bytes().ct_eq(hash.as_bytes()).into();
        let install = found.filter(same).ok_or(Refused::Invalid)?;
        self.seen(&install).await;
        Ok(User { id: install.user, install: install.id })
    }

    async fn seen(&self, install: &Install) {
        let now = self.now();
        if now.since(install.seen) < EXACTNESS {
            return;
        }
        if let Err(error) = self.ports.installs.touch(&install.id, now).await {
            tracing::warn!(%error, install = install.id, "the last-seen time of an install was not stored");
        }
    }
}

/// A new install of a new user, and its token.
pub(super) fn fresh(at: Time, system: Option<String>) -> (Install, String) {
    let token = format!("wnd_install_{}", url_safe(&random::<32>()));
    let install = Install {
        id: format!("install_{}", hex::encode(random::<16>())),
        user: format!("user_{}", hex::encode(random::<16>())),
        token: hashed(&token),
        created: at,
        seen: at,
        system,
    };
    (install, token)
}

/// A random UUID, in hex.
pub(super) fn uuid() -> String {
    let mut bytes = random::<16>();
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    hex::encode(bytes)
}

fn hashed(token: &str) -> String {
    hex::encode(Sha256::digest(token))
}

fn url_safe(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has a source of randomness");
    bytes
}

/// The bearer token of a request; the scheme may be in any case.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
