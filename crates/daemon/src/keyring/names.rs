//! The names of the keys in the keyring: a file with one name per line, without secrets.
//!
//! Like the keyring, the file belongs to the user and not to a data directory. Without recorded
//! names the daemon does not access the keyring.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub(crate) struct Names {
    file: Option<PathBuf>,
}

impl Names {
    /// The file of this environment.
    pub(crate) fn of<'a>(variable: impl Fn(&str) -> Option<&'a String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
        Self { file: config.map(|config| config.join("quintet/keyring")) }
    }

    pub(crate) fn read(&self) -> Result<Vec<String>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        match fs::read_to_string(file) {
            Ok(text) => Ok(text.lines().filter(|name| !name.is_empty()).map(Into::into).collect()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(|| format!("{} cannot be read", file.display())),
        }
    }

    pub(crate) fn add(&self, name: &str) -> Result<()> {
        let mut names = self.read()?;
        names.push(name.into());
        names.sort();
        names.dedup();
        self.write(&names)
    }

    /// Removes a name; true if it existed.
    pub(crate) fn remove(&self, name: &str) -> Result<bool> {
        let names = self.read()?;
        let left: Vec<String> = names.iter().filter(|other| *other != name).cloned().collect();
        if left.len() == names.len() {
            return Ok(false);
        }
        self.write(&left)?;
        Ok(true)
    }

    fn write(&self, names: &[String]) -> Result<()> {
        let file = self
            .file
            .as_deref()
            .context("HOME is not set, so the names of keys cannot be stored")?;
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        replace(file, &lines).with_context(|| format!("{} cannot be written", file.display()))
    }
}

/// Replaces a file atomically, so that no reader sees a part of it.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let new = file.with_extension("new");
    let mut opened =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    opened.write_all(text.as_bytes())?;
    opened.sync_all()?;
    fs::rename(new, file)
}
