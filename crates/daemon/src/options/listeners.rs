//! Where the daemon is asked to listen, whatever it speaks there: every `listen.*` that is not off.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::keys::KEYS;
use super::layers::Layers;

/// A place to listen at.
#[derive(Debug)]
pub(crate) struct Listener {
    /// As the key has it, after `listen.`.
    pub(crate) protocol: &'static str,
    pub(crate) place: Place,
    /// Whether somebody chose it, rather than nobody saying otherwise.
    pub(crate) chosen: bool,
}

/// A place to listen at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl Place {
    /// What a value means; nothing if it names no place.
    fn of(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse() {
            return Some(Self::Tcp(address));
        }
        let path = text.strip_prefix("unix:").unwrap_or(text);
        path.contains('/').then(|| Self::Unix(PathBuf::from(path)))
    }
}

pub(super) fn understand(layers: &Layers) -> Vec<Listener> {
    let listener = |(key, _, _): &(&'static str, _, _)| {
        let protocol = key.strip_prefix("listen.")?;
        let place = Place::of(layers.str(key)?)?;
        Some(Listener { protocol, place, chosen: layers.source(key) != "default" })
    };
    KEYS.iter().filter_map(listener).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_an_address_or_a_path() {
        let tcp = |text: &str| Some(Place::Tcp(text.parse().expect("an address")));
        let unix = |text: &str| Some(Place::Unix(text.into()));
        assert_eq!(Place::of("127.0.0.1:8787"), tcp("127.0.0.1:8787"));
        assert_eq!(Place::of("[::1]:80"), tcp("[::1]:80"));
        assert_eq!(Place::of("/run/me/q.sock"), unix("/run/me/q.sock"));
        assert_eq!(Place::of("unix:/run/me/q.sock"), unix("/run/me/q.sock"));
        assert_eq!(Place::of("off"), None);
    }
}
