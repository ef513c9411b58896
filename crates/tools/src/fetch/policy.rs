//! Which servers may be asked.

use std::net::{IpAddr, SocketAddr};

use reqwest::Url;
use tokio::net::lookup_host;

use super::address;

/// The lowest port that is not reserved for system services.
const FIRST_FREE: u16 = 1024;

/// Public web servers, and those that are named here.
#[derive(Clone, Debug, Default)]
pub struct FetchPolicy {
    /// Hosts and ports that may be reached although they are not public.
    named: Vec<(String, u16)>,
}

impl FetchPolicy {
    /// Adds these `host:port` to the public ones.
    pub fn new(named: &[String]) -> Result<Self, String> {
        let pair = |text: &String| {
            pair(text).ok_or_else(|| format!("{text:?} is not like `host:port` or `[::1]:port`"))
        };
        Ok(Self { named: named.iter().map(pair).collect::<Result<_, _>>()? })
    }

    /// Adds the server of this URL to the public ones.
    pub(crate) fn to(url: &Url) -> Result<Self, String> {
        let (host, port) = host_and_port(url)?;
        Ok(Self { named: vec![(host.to_owned(), port)] })
    }

    /// Whether a URL may be asked, as far as one sees without asking for its name.
    pub(crate) fn check(&self, url: &Url) -> Result<(), String> {
        let (host, port) = host_and_port(url)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err("a URL with a user name or password is not fetched".to_owned());
        }
        if self.names(host, port) {
            return Ok(());
        }
        if !matches!(port, 80 | 443 | FIRST_FREE..) {
            return Err(format!("port {port} is not one of web servers"));
        }
        literal(host).map_or(Ok(()), |address| public(host, address))
    }

    /// The addresses that a URL leads to, each of which may be asked.
    pub(super) async fn resolve(&self, url: &Url) -> Result<Vec<SocketAddr>, String> {
        let (host, port) = host_and_port(url)?;
        if let Some(address) = literal(host) {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let found = lookup_host((host, port)).await;
        let found: Vec<_> = found.map_err(|error| format!("{host}: {error}"))?.collect();
        if found.is_empty() {
            return Err(format!("{host} has no address"));
        }
        if !self.names(host, port) {
            found.iter().try_for_each(|address| public(host, address.ip()))?;
        }
        Ok(found)
    }

    fn names(&self, host: &str, port: u16) -> bool {
        self.named.iter().any(|named| (named.0.as_str(), named.1) == (host, port))
    }
}

/// The host as URLs spell it, and the port.
fn pair(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let url = Url::parse(&format!("http://{host}/")).ok()?;
    let plain = url.port().is_none() && url.path() == "/" && url.username().is_empty();
    Some((url.host_str().filter(|_| plain)?.to_owned(), port.parse().ok()?))
}

fn host_and_port(url: &Url) -> Result<(&str, u16), String> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("only http and https are fetched, not {}", url.scheme()));
    }
    let parts = url.host_str().zip(url.port_or_known_default());
    parts.ok_or_else(|| format!("{url} names no host"))
}

/// The IP address of a literal host. URL parsing normalizes `0x7f.1` to 127.0.0.1, so this covers all forms.
fn literal(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn public(host: &str, address: IpAddr) -> Result<(), String> {
    match address::non_public_reason(address) {
        None => Ok(()),
        Some(what) if literal(host).is_some() => {
            Err(format!("{address} is not a public address: {what}"))
        }
        Some(what) => {
            Err(format!("{host} leads to {address}, which is not a public address: {what}"))
        }
    }
}
