//! The computer-use protocol.

use std::time::Duration;

use anyhow::{Result, bail};
use quintet_dialects::transport::access::Token;
use quintet_dialects::windie::Registration;

use super::agent::Port;
use crate::options::layers::Layers;

/// How the protocol is set up.
#[derive(Clone, Debug)]
pub(crate) struct Windie {
    pub(crate) socket: Port,
    pub(crate) hosts: Vec<String>,
    /// Whether requests must bring a token.
    pub(crate) install_auth: bool,
    pub(crate) registration: Registration,
    pub(crate) runs_key: Option<String>,
    pub(crate) embedding_key: Option<String>,
    /// The most bytes that an artifact may have.
    pub(crate) largest_artifact: u64,
    /// For how long an artifact stays that no session refers to; for ever if not given.
    pub(crate) keep_artifacts: Option<Duration>,
    /// Whether clients are told what took how long.
    pub(crate) trace_events: bool,
    /// Whether clients are told what may be worth remembering.
    pub(crate) memory_events: bool,
    /// How many runs of a workspace may be under way, if somebody said so.
    pub(crate) most_runs: Option<u64>,
    /// What must never be written down.
    pub(crate) secrets: Vec<String>,
}

const LISTEN: &str = "listen.windie";

pub(super) fn understand(layers: &Layers) -> Result<Windie> {
    let socket = Port::of(layers, LISTEN)?;
    let install_auth = layers.flag("windie.install_auth").unwrap_or(false);
    let secret = |key: &str| layers.str(key).filter(|secret| !secret.is_empty()).map(String::from);
    let registration_secret = secret("windie.registration_secret");
    let registration = registration(layers, registration_secret.clone());
    if let Some(address) = socket.address.filter(|address| !address.ip().is_loopback())
        && matches!(registration, Registration::Open)
    {
        bail!(
            "{LISTEN} = {address}: other machines could register, so windie.registration_secret must \
             be set, or windie.registration must be false ({})",
            layers.source(LISTEN)
        );
    }
    let (runs_key, embedding_key) =
        (secret("windie.runs_key"), secret("windie.embedding_service_key"));
    let secrets = [&registration_secret, &runs_key, &embedding_key];
    let secrets = secrets.into_iter().flatten().cloned().collect();
    let keep = layers.number("windie.artifact_keep_seconds").filter(|seconds| *seconds > 0);
    Ok(Windie {
        socket,
        hosts: layers.list("windie.hosts").unwrap_or_default(),
        install_auth,
        registration,
        runs_key,
        embedding_key,
        largest_artifact: layers.number("windie.artifact_limit_bytes").unwrap_or(u64::MAX),
        keep_artifacts: keep.map(Duration::from_secs),
        most_runs: layers.number("windie.max_active_runs_per_workspace"),
        trace_events: layers.flag("windie.trace_events").unwrap_or(false),
        memory_events: layers.flag("windie.memory_events").unwrap_or(false),
        secrets,
    })
}

fn registration(layers: &Layers, secret: Option<String>) -> Registration {
    match (layers.flag("windie.registration").unwrap_or(true), secret) {
        (false, _) => Registration::Off,
        (true, Some(secret)) => Registration::Secret(Token::new(secret)),
        (true, None) => Registration::Open,
    }
}
