//! The sockets that the daemon listens on: one for every listener of a protocol that is not off.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use quintet_dialects::DIALECTS;
use quintet_dialects::dialect::{ListenerSpec, Transport};

use super::layers::Layers;

/// A socket to listen on.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) spec: &'static ListenerSpec,
    pub(crate) place: ListenAddress,
    /// True if the user set the address; false if it is the default.
    pub(crate) chosen: bool,
}

/// An address to listen on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ListenAddress {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Listener {
    /// False if the daemon may start without this listener when its address is taken.
    pub(crate) fn is_required(&self) -> bool {
        self.chosen || self.spec.required
    }

    /// Changes a default port to the development port, if the protocol has one.
    pub(crate) fn use_dev_port(&mut self) {
        if let ListenAddress::Tcp(address) = &mut self.place
            && !self.chosen
        {
            address.set_port(address.port() + self.spec.dev_port_offset);
        }
    }
}

/// Parses the addresses of listeners. Fails if a value is not an address, or of the wrong kind.
pub(super) fn parse(layers: &Layers, data_dir: &Path) -> Result<Vec<Listener>> {
    let specs = DIALECTS.iter().flat_map(|dialect| dialect.listeners);
    let mut listeners = Vec::new();
    for spec in specs {
        let key = format!("listen.{}", spec.name);
        let Some(text) = layers.str(&key).filter(|text| *text != "off") else { continue };
        let place = match spec.transport {
            Transport::Http | Transport::WebSocket => {
                ListenAddress::Tcp(address(layers, &key, text)?)
            }
            Transport::Unix(file) => {
                ListenAddress::Unix(socket(layers, &key, text, &runtime_dir(layers).join(file))?)
            }
            Transport::Attached(file) => {
                ListenAddress::Unix(socket(layers, &key, text, &data_dir.join(file))?)
            }
        };
        listeners.push(Listener { spec, place, chosen: layers.source(&key) != "default" });
    }
    Ok(listeners)
}

fn address(layers: &Layers, key: &str, text: &str) -> Result<SocketAddr> {
    let source = layers.source(key);
    text.parse().with_context(|| {
        format!("{key} must be an address like 127.0.0.1:8787, or \"off\", not {text:?} ({source})")
    })
}

/// The path of a Unix socket; `auto` is the protocol's default path, where clients look for it.
fn socket(layers: &Layers, key: &str, text: &str, default: &Path) -> Result<PathBuf> {
    let path = if text == "auto" { default.to_owned() } else { text.into() };
    if !path.is_absolute() {
        let source = layers.source(key);
        bail!("{key} must be an absolute path, \"auto\" or \"off\", not {path:?} ({source})");
    }
    Ok(path.to_string_lossy().replace("{pid}", &std::process::id().to_string()).into())
}

/// The user's runtime directory. The variable may be inherited from a login whose directory was
/// deleted.
fn runtime_dir(layers: &Layers) -> &Path {
    let dir = layers.environment.get("XDG_RUNTIME_DIR").map(Path::new);
    dir.filter(|dir| dir.is_absolute() && dir.is_dir()).unwrap_or(Path::new("/tmp"))
}
