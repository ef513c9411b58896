//! The terminal protocol: where its socket is and what clients may do there.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::super::layers::Layers;

/// How the terminal protocol is served.
#[derive(Clone, Debug)]
pub(crate) struct Terminal {
    /// Where its socket is.
    pub(crate) socket: PathBuf,
    /// Where sessions may be saved.
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) context_tokens: u64,
    /// How long a question stands; for ever if not given.
    pub(crate) answer_within_ms: Option<u64>,
}

pub(super) fn understand(layers: &Layers) -> Result<Option<Terminal>> {
    let Some(socket) = socket(layers)? else { return Ok(None) };
    let seconds = layers.number("terminal.approval_timeout_seconds").filter(|seconds| *seconds > 0);
    Ok(Some(Terminal {
        socket,
        folders: folders(layers)?,
        context_tokens: layers.number("terminal.context_tokens").unwrap_or_default(),
        answer_within_ms: seconds.map(|seconds| seconds.saturating_mul(1000)),
    }))
}

/// The daemon's own file where clients look for one, or what the user says.
fn socket(layers: &Layers) -> Result<Option<PathBuf>> {
    let key = "listen.terminal";
    let path = match layers.str(key) {
        None | Some("off") => return Ok(None),
        Some("auto") => {
            // The variable may be inherited from a login whose directory is gone, or not ours.
            let dir = variable(layers, "XDG_RUNTIME_DIR").map(Path::new).filter(|dir| dir.is_dir());
            dir.unwrap_or(Path::new("/tmp")).join("openagent-terminal-{pid}.sock")
        }
        Some(path) => path.into(),
    };
    if !path.is_absolute() {
        let from = layers.source(key);
        bail!("{key} must be an absolute path, \"auto\" or \"off\", not {path:?} ({from})");
    }
    let path = path.to_string_lossy().replace("{pid}", &std::process::id().to_string());
    Ok(Some(path.into()))
}

fn folders(layers: &Layers) -> Result<Vec<PathBuf>> {
    let key = "terminal.sessions_dir";
    let home = || variable(layers, "HOME").map(|home| Path::new(home).join(".openagent/sessions"));
    let own = layers.str(key).map(PathBuf::from).or_else(home);
    if let Some(own) = own.as_ref().filter(|own| !own.is_absolute()) {
        bail!("{key} must be an absolute path, not {own:?} ({})", layers.source(key));
    }
    Ok(own.into_iter().chain([super::data_dir(layers)?.join("saved")]).collect())
}

fn variable<'a>(layers: &'a Layers, name: &str) -> Option<&'a str> {
    layers.environment.get(name).map(String::as_str).filter(|value| !value.is_empty())
}
