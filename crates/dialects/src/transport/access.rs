//! The access policy of every listener.
//!
//! On this machine the peer process must belong to the same user, and must not be a command that the agent
//! started (see [`peer`]). A page in a browser also runs as that user and can send requests, directly or by
//! DNS rebinding, so `Host` must be known and an `Origin` must be allowed. If a token is set, every request
//! must have it; only then are other users and machines admitted.

pub mod peer;
mod process;
mod sockets;

use std::fmt;
use std::net::IpAddr;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Uri, header};
use axum::response::Response;
use subtle::ConstantTimeEq;

use self::peer::Peer;
use super::query::parameter;

pub(super) use self::process::is_command;

/// The rules for the peers, hosts and pages that a listener admits.
#[derive(Clone)]
pub struct Access {
    /// The daemon's token; if set, every request must have it.
    pub token: Option<Token>,
    /// The token of the listener's protocol, accepted in addition.
    pub protocol_token: Option<Token>,
    /// Additional host names that requests may use.
    pub hosts: Vec<String>,
    /// Origins whose pages may send requests: scheme, host and port.
    pub origins: Vec<String>,
    /// True for paths at which the protocol itself checks a token or a key.
    pub has_own_auth: fn(&str) -> bool,
    /// The protocol's response to a refused request.
    pub refuse: fn(&Denied) -> Response,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

/// A secret that requests are compared with. Never shown.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Compares in constant time. An empty secret matches nothing.
    pub fn matches(&self, given: &str) -> bool {
        !self.0.is_empty() && bool::from(self.0.as_bytes().ct_eq(given.as_bytes()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

const OTHER_USER: &str = "the daemon belongs to another user; set `auth.token` there to let you in";
const OTHER_MACHINE: &str = "other machines may connect only if the daemon has `auth.token` set";
const UNKNOWN_USER: &str =
    "the user of this connection is unknown; `auth.token` must be set and sent";

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// A header that may occur once occurs twice.
    #[error("more than one {0} header")]
    DuplicateHeader(&'static str),
    /// The request is addressed to another host.
    #[error("host not allowed: {0}; use localhost, or add the name to `hosts` of the protocol")]
    Host(String),
    /// The request comes from a page of another origin.
    #[error("origin not allowed: {0}; add it to `auth.origins` to let its pages connect")]
    Origin(String),
    /// The request lacks the token.
    #[error("a token is needed: send `Authorization: Bearer TOKEN` with the value of `auth.token`")]
    Token,
    /// The peer may not connect.
    #[error("{0}")]
    Peer(&'static str),
}

impl Denied {
    /// The HTTP status of the response.
    pub fn status(&self) -> u16 {
        match self {
            Self::DuplicateHeader(_) => 400,
            Self::Token => 401,
            Self::Host(_) | Self::Origin(_) | Self::Peer(_) => 403,
        }
    }
}

/// How an admitted request is handled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admitted {
    /// Handled by the protocol.
    Direct,
    /// Handled by the protocol; a page of this origin may read the response.
    Page(HeaderValue),
    /// A preflight request of this origin, which gets a response here.
    Preflight(HeaderValue),
}

impl Access {
    /// Admits a peer. Fails if no request of it is handled.
    pub(super) fn admit_peer(&self, peer: Peer) -> Result<(), Denied> {
        match peer {
            Peer::SameUser => Ok(()),
            Peer::OwnCommand => Err(Denied::Peer("commands of the agent may not connect")),
            Peer::OtherUser | Peer::OtherMachine | Peer::Unknown if self.token.is_some() => Ok(()),
            Peer::OtherUser => Err(Denied::Peer(OTHER_USER)),
            Peer::OtherMachine => Err(Denied::Peer(OTHER_MACHINE)),
            Peer::Unknown => Err(Denied::Peer(UNKNOWN_USER)),
        }
    }

    /// Checks the host, origin and token of a request. Fails with the reason if it is refused.
    pub(super) fn admit(&self, local: IpAddr, request: &Parts) -> Result<Admitted, Denied> {
        let headers = &request.headers;
        let host = single_header(headers, header::HOST)?.unwrap_or_default();
        let named = request.uri.host();
        if !self.is_ours(host_name(host), local) || !named.is_none_or(|it| self.is_ours(it, local))
        {
            return Err(Denied::Host(named.unwrap_or(host).into()));
        }
        let origin =
            single_header(headers, header::ORIGIN)?.map(|origin| self.origin(origin, host));
        let origin = origin.transpose()?;
        let is_preflight = headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        match origin {
            Some(page) if request.method == Method::OPTIONS && is_preflight => {
                Ok(Admitted::Preflight(page))
            }
            page => {
                self.authorize(request)?;
                Ok(page.map_or(Admitted::Direct, Admitted::Page))
            }
        }
    }

    fn authorize(&self, request: &Parts) -> Result<(), Denied> {
        let tokens: Vec<&Token> = self.token.iter().chain(&self.protocol_token).collect();
        if tokens.is_empty() || (self.has_own_auth)(request.uri.path()) {
            return Ok(());
        }
        let given = match single_header(&request.headers, header::AUTHORIZATION)? {
            Some(value) => value.strip_prefix("Bearer ").map(Into::into),
            None => token_in_query(&request.method, &request.uri),
        };
        let given = given.unwrap_or_default();
        if tokens.iter().any(|token| token.matches(&given)) { Ok(()) } else { Err(Denied::Token) }
    }

    /// Admits a page if its origin is configured, or if it was served by this listener.
    fn origin(&self, origin: &str, host: &str) -> Result<HeaderValue, Denied> {
        let ours = origin.strip_prefix("http://") == Some(host);
        let denied = || Denied::Origin(origin.into());
        if ours || self.origins.iter().any(|known| known == origin) {
            HeaderValue::from_str(origin).map_err(|_| denied())
        } else {
            Err(denied())
        }
    }

    fn is_ours(&self, name: &str, local: IpAddr) -> bool {
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.is_loopback() || address == local)
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// Browsers cannot set headers for a WebSocket or an event stream, so these may send the token as `access_token`
/// (RFC 6750).
fn token_in_query(method: &Method, uri: &Uri) -> Option<String> {
    let query = uri.query().filter(|_| method == Method::GET)?;
    parameter(query, "access_token")
}

fn single_header(headers: &HeaderMap, name: header::HeaderName) -> Result<Option<&str>, Denied> {
    let mut values = headers.get_all(&name).iter();
    let first = values.next().map(|value| value.to_str().unwrap_or("?"));
    match values.next() {
        None => Ok(first),
        Some(_) if name == header::HOST => Err(Denied::DuplicateHeader("Host")),
        Some(_) if name == header::ORIGIN => Err(Denied::DuplicateHeader("Origin")),
        Some(_) => Err(Denied::DuplicateHeader("Authorization")),
    }
}

/// The host without its port.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests;
