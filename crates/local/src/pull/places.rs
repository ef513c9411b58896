//! Where to look: the hub or its mirror, and the package index the way pip finds it.

use std::path::{Path, PathBuf};

const HUB: &str = "https://huggingface.co";
const INDEX: &str = "https://pypi.org/simple";

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    mirror: Option<String>,
    index: String,
}

impl Places {
    /// What the user's environment and pip's configuration say.
    pub fn of(environment: &[(String, String)]) -> Self {
        let get = |name: &str| {
            let found = environment.iter().find(|(key, value)| key == name && !value.is_empty());
            found.map(|(_, value)| value.clone())
        };
        let configured = || files(&get).iter().rev().find_map(|file| index_url(file));
        let index = get("PIP_INDEX_URL").or_else(configured).unwrap_or_else(|| INDEX.into());
        Self { mirror: get("HF_ENDPOINT"), index }
    }

    /// The address of a file of the hub, at its mirror if there is one.
    pub(super) fn hub(&self, url: &str) -> String {
        match (&self.mirror, url.strip_prefix(HUB)) {
            (Some(mirror), Some(path)) => format!("{}{path}", mirror.trim_end_matches('/')),
            _ => url.into(),
        }
    }

    pub(super) fn index(&self) -> &str {
        &self.index
    }
}

/// Pip's configuration files; what comes later wins.
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

#[cfg(test)]
mod tests;
