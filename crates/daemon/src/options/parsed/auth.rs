//! The access rules of all listeners.

use anyhow::{Result, bail};

use super::super::listeners::{ListenAddress, Listener};
use crate::options::layers::Layers;

/// The settings that decide which peers may connect.
#[derive(Clone, Debug)]
pub(crate) struct Auth {
    /// The token that every request must send.
    pub(crate) token: Option<String>,
    /// The origins of pages that may send requests.
    pub(crate) origins: Vec<String>,
}

pub(super) fn parse(layers: &Layers, listeners: &[Listener]) -> Result<Auth> {
    let token = layers.str("auth.token").filter(|token| !token.is_empty()).map(String::from);
    for Listener { spec, place, .. } in listeners {
        if let ListenAddress::Tcp(address) = place
            && !address.ip().is_loopback()
            && token.is_none()
        {
            let key = format!("listen.{}", spec.name);
            bail!(
                "{key} = {address}: other machines could reach it, so auth.token must be set, or it \
                 must be a loopback address ({})",
                layers.source(&key)
            );
        }
    }
    let origins = layers.list("auth.origins").unwrap_or_default();
    if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
        bail!(
            "auth.origins: {wrong:?} is no origin: write scheme, host and port as in \
             \"http://localhost:3000\" ({})",
            layers.source("auth.origins")
        );
    }
    Ok(Auth { token, origins })
}

/// Browsers send neither a path nor a trailing slash.
fn is_origin(text: &str) -> bool {
    let rest = text.split_once("://").filter(|(scheme, _)| !scheme.is_empty());
    rest.is_some_and(|(_, rest)| !rest.is_empty() && !rest.contains(['/', '*', ' ', '?', '#']))
}
