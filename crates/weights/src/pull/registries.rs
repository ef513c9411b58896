//! The addresses of sources: a hub or its mirror, and the package registries configured for pip and
//! npm.

use std::path::{Path, PathBuf};

use crate::Registry;

const HUB: &str = "https://huggingface.co";
const PYPI: &str = "https://pypi.org/simple";
const NPM: &str = "https://registry.npmjs.org";

/// The addresses of sources.
#[derive(Clone, Debug)]
pub struct Registries {
    mirror: Option<String>,
    pypi: String,
    npm: String,
}

impl Registries {
    /// Reads the user's environment and the configuration files of pip and npm.
    pub fn new(environment: &[(String, String)]) -> Self {
        let get = |name: &str| {
            let found = environment.iter().find(|(key, value)| key == name && !value.is_empty());
            found.map(|(_, value)| value.clone())
        };
        let pip = || files(&get).iter().rev().find_map(|file| index_url(file));
        let pypi = get("PIP_INDEX_URL").or_else(pip).unwrap_or_else(|| PYPI.into());
        let npm = get("NPM_CONFIG_REGISTRY").or_else(|| get("npm_config_registry"));
        let npm = npm.or_else(|| npmrc_registry(&PathBuf::from(get("HOME")?).join(".npmrc")));
        Self { mirror: get("HF_ENDPOINT"), pypi, npm: npm.unwrap_or_else(|| NPM.into()) }
    }

    /// The address of a file of the hub, at its mirror if one is set.
    pub(super) fn hub(&self, url: &str) -> String {
        match (&self.mirror, url.strip_prefix(HUB)) {
            (Some(mirror), Some(path)) => format!("{}{path}", mirror.trim_end_matches('/')),
            _ => url.into(),
        }
    }

    pub(super) fn of(&self, registry: Registry) -> &str {
        match registry {
            Registry::PyPi => &self.pypi,
            Registry::Npm => &self.npm,
        }
    }
}

/// Pip's configuration files; later ones override earlier ones.
fn files(get: &dyn Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let home = get("HOME").map(PathBuf::from);
    let config = get("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(home.as_ref()?.join(".config")));
    let own = get("PIP_CONFIG_FILE").map(PathBuf::from);
    let system = ["/etc/xdg/pip/pip.conf", "/etc/pip.conf"].map(PathBuf::from);
    let users =
        [home.map(|dir| dir.join(".pip/pip.conf")), config.map(|dir| dir.join("pip/pip.conf"))];
    system.into_iter().chain(users.into_iter().flatten()).chain(own).collect()
}

/// `index-url` of the section `[global]`.
fn index_url(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let mut section = "";
    let mut found = None;
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.trim();
        } else if let Some((key, value)) = line.split_once(['=', ':'])
            && section == "global"
            && key.trim().replace('_', "-") == "index-url"
        {
            found = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        }
    }
    found
}

/// `registry=` of npm's configuration file.
fn npmrc_registry(file: &Path) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let values = text.lines().filter_map(|line| line.split_once('='));
    let mut values = values.filter(|(key, _)| key.trim() == "registry");
    values.next_back().map(|(_, value)| value.trim().to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
