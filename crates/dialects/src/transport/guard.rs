//! Who may talk to a listener: the right `Host`, no foreign `Origin`, the right token.
//!
//! A page in a browser can send requests to this machine, directly or by pointing its own name here
//! (DNS rebinding). Neither names us in `Host` *and* comes from here by `Origin`.

use axum::http::{HeaderMap, header};
use subtle::ConstantTimeEq;

/// Whom a listener answers.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Names besides the loopback ones that requests may be addressed to.
    pub hosts: Vec<String>,
    /// A token that every request must bring.
    pub token: Option<Token>,
}

/// A secret that requests are compared with. Never shown.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Wraps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Compares, in a time that tells nothing of the secret.
    pub fn matches(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Why a request is turned away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It is addressed to somebody else.
    Host(String),
    /// It comes from a foreign page.
    Origin(String),
    /// It lacks the token.
    Token,
}

impl Guard {
    /// Looks at where a request comes from and goes to.
    pub fn admit(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let host = text(headers, header::HOST);
        if !self.knows(host_name(host)) {
            return Err(Denied::Host(host.into()));
        }
        let origin = text(headers, header::ORIGIN);
        if !origin.is_empty() && !origin_host(origin).is_some_and(|name| self.knows(name)) {
            return Err(Denied::Origin(origin.into()));
        }
        Ok(())
    }

    /// Looks at the token.
    pub fn authorize(&self, headers: &HeaderMap) -> Result<(), Denied> {
        let Some(token) = &self.token else { return Ok(()) };
        let given =
            text(headers, header::AUTHORIZATION).strip_prefix("Bearer ").unwrap_or_default();
        match token.matches(given) {
            true => Ok(()),
            false => Err(Denied::Token),
        }
    }

    fn knows(&self, name: &str) -> bool {
        matches!(name, "localhost" | "[::1]")
            || name.parse::<std::net::Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
            || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The host without its port.
fn host_name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    }
}

fn origin_host(origin: &str) -> Option<&str> {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))?;
    Some(host_name(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(host: &str, origin: &str, admitted: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if !origin.is_empty() {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let guard = Guard { hosts: vec!["desk.example".into()], token: None };
        assert_eq!(guard.admit(&headers).is_ok(), admitted, "{host} {origin}");
    }

    #[test]
    fn only_this_machine_and_named_hosts_are_admitted() {
        check("127.0.0.1:8787", "", true);
        check("localhost:1", "http://localhost:5173", true);
        check("[::1]:8787", "http://[::1]:3000", true);
        check("desk.example", "https://desk.example", true);
        check("evil.example", "", false);
        check("evil.example:8787", "", false);
        check("127.0.0.1.evil.example", "", false);
        check("127.0.0.1:8787", "https://evil.example", false);
        check("127.0.0.1:8787", "null", false);
        check("127.0.0.1:8787", "file://", false);
        check("127.0.0.1:8787", "http://localhost.evil.example", false);
    }

    #[test]
    fn a_token_is_compared_whole_and_never_shown() {
        let guard = Guard { hosts: vec![], token: Some(Token::new("s3cret")) };
        let with = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            guard.authorize(&headers)
        };
        assert_eq!(with("Bearer s3cret"), Ok(()));
        for bad in ["Bearer s3cre", "Bearer s3crets", "s3cret", "bearer s3cret", "Bearer "] {
            assert_eq!(with(bad), Err(Denied::Token), "{bad}");
        }
        assert!(!format!("{guard:?}").contains("s3cret"));
    }
}
