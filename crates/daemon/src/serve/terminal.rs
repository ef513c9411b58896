//! The terminal protocol.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use quintet_dialects::terminal::{self, Folders, Ports, Settings};
use quintet_dialects::transport::uds::Socket;
use quintet_runtime::SystemStamps;
use tokio_util::sync::CancellationToken;

use crate::assemble::Assembly;
use crate::options::{Options, Terminal};

pub(super) fn bind(terminal: &Terminal) -> Result<Socket> {
    let socket = Socket::bind(&terminal.socket);
    socket.with_context(|| format!("listen.terminal = {}", terminal.socket.display()))
}

/// Serves it until the daemon closes.
pub(super) fn run(
    socket: Socket,
    options: &Options,
    terminal: &Terminal,
    assembly: &Assembly,
    closing: &CancellationToken,
) -> impl Future<Output = ()> + Send + 'static + use<> {
    let ports = Ports {
        sessions: Arc::new(assembly.runtime.clone()),
        removals: Arc::new(assembly.runtime.clone()),
        models: Arc::clone(&assembly.models),
        stamps: Arc::new(SystemStamps),
    };
    let settings = Settings {
        default_model: options.default_model.clone(),
        folders: Folders::new(terminal.folders.clone()),
        context_tokens: terminal.context_tokens,
        answer_within_ms: terminal.answer_within_ms,
    };
    terminal::run(socket, ports, settings, closing.clone())
}
