//! The agent-server protocol: where it listens and what it speaks to.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use quintet_dialects::agent;
use quintet_runtime::SystemStamps;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::assemble::Assembly;
use crate::options::{Agent, Options, Port};

/// Listens, unless another program has an address that nobody asked for.
pub(super) async fn bind(protocol: &str, place: Port) -> Result<Option<TcpListener>> {
    match super::bind(protocol, place.address).await {
        Err(error) if !place.wanted => {
            tracing::warn!("{error:#}; it is not served");
            Ok(None)
        }
        bound => bound,
    }
}

/// The protocol, and the service that says whether the daemon is well.
pub(super) fn routers(
    options: &Options,
    assembly: &Assembly,
    closing: &CancellationToken,
) -> (Router, Router) {
    let runtime = Arc::new(assembly.runtime.clone());
    let ports = agent::Ports {
        sessions: runtime.clone(),
        branches: runtime.clone(),
        rehearsals: runtime.clone(),
        removals: runtime,
        blobs: Arc::clone(&assembly.blobs),
        models: Arc::clone(&assembly.models),
        pulse: Arc::clone(&assembly.pulse),
        stamps: Arc::new(SystemStamps),
        changes: assembly.changes.clone(),
    };
    let Agent { ping, silence, home, .. } = options.agent.clone();
    let settings = agent::Settings {
        home,
        default_model: options.default_model.to_string(),
        providers: options.providers.iter().map(|provider| provider.name.clone()).collect(),
        closing: closing.clone(),
        connections: Arc::default(),
        ping,
        silence,
    };
    (agent::router(ports.clone(), settings.clone()), agent::health(ports, settings))
}
