//! The options of the sandbox.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use quintet_tools::sandbox::{Limits, Mode, Sandbox};

use super::{Layers, choice};

pub(super) fn parse(layers: &Layers, data_dir: &Path) -> Result<Sandbox> {
    let modes = [("prefer", Mode::Prefer), ("require", Mode::Require), ("off", Mode::Off)];
    Ok(Sandbox {
        mode: choice(layers, "sandbox.mode", &modes)?,
        network: layers.flag("sandbox.network").unwrap_or(false),
        extra_read: paths(layers, "sandbox.read")?,
        extra_write: paths(layers, "sandbox.write")?,
        closed: vec![data_dir.to_owned()],
        limits: Limits::default(),
    })
}

/// A list of absolute paths; `~` is the user's home.
pub(super) fn paths(layers: &Layers, key: &str) -> Result<Vec<PathBuf>> {
    let home = layers.environment.get("HOME").map(Path::new);
    let given = layers.list(key).unwrap_or_default();
    given.iter().map(|path| absolute(layers, key, home, path)).collect()
}

fn absolute(layers: &Layers, key: &str, home: Option<&Path>, path: &str) -> Result<PathBuf> {
    let whole = in_home(path, home);
    if !whole.is_absolute() {
        bail!("{key}: {path:?} is not an absolute path ({})", layers.source(key));
    }
    // `home.join("")` ends in a slash, which is dropped.
    Ok(whole.components().collect())
}

/// A path with `~` at its beginning replaced by the user's home.
pub(super) fn in_home(path: &str, home: Option<&Path>) -> PathBuf {
    let inside = Path::new(path).strip_prefix("~").ok().zip(home);
    inside.map_or_else(|| path.into(), |(rest, home)| home.join(rest))
}
