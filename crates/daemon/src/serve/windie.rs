//! The computer-use protocol: what it speaks to.

use std::sync::Arc;

use quintet_dialects::transport::access::Token;
use quintet_dialects::windie::{Abilities, Beside, Ports, Settings};
use quintet_runtime::SystemStamps;
use tokio_util::sync::CancellationToken;

use crate::assemble::Assembly;
use crate::options::{Options, Windie};

/// What the protocol speaks to, and how it is set up.
pub(super) fn parts(
    options: &Options,
    assembly: &Assembly,
    closing: &CancellationToken,
) -> (Ports, Settings) {
    let ports = Ports {
        sessions: Arc::new(assembly.runtime.clone()),
        rehearsals: Arc::new(assembly.runtime.clone()),
        directory: Arc::clone(&assembly.directory),
        blobs: Arc::clone(&assembly.blobs),
        models: Arc::clone(&assembly.models),
        pulse: Arc::clone(&assembly.pulse),
        stamps: Arc::new(SystemStamps),
        installs: Arc::clone(&assembly.front_ends.installs),
        preferences: assembly.front_ends.preferences.clone(),
        artifacts: Arc::clone(&assembly.front_ends.artifacts),
        uploads: Arc::clone(&assembly.front_ends.uploads),
    };
    if let Some(most) = options.windie.most_runs {
        tracing::warn!(
            "windie.max_active_runs_per_workspace = {most} has no effect: runs are not served yet"
        );
    }
    (ports, settings(options, assembly, closing))
}

fn settings(options: &Options, assembly: &Assembly, closing: &CancellationToken) -> Settings {
    let Windie { registration, runs_key, embedding_key, .. } = options.windie.clone();
    Settings {
        default_model: options.default_model.clone(),
        install_auth: options.windie.install_auth,
        registration,
        runs_key: runs_key.map(Token::new),
        embedding_key: embedding_key.map(Token::new),
        largest_artifact: options.windie.largest_artifact,
        keep_artifacts: options.windie.keep_artifacts,
        workspace: options.data_dir.join("windie"),
        abilities: Abilities {
            web_search: assembly.searches.clone(),
            tools: assembly.unasked.clone(),
            ..Abilities::default()
        },
        beside: Beside {
            traces: options.windie.trace_events,
            memories: options.windie.memory_events,
        },
        closing: closing.clone(),
    }
}
