//! What a command gets to see of the daemon's environment: little, and no secrets.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The variables that are passed on; `LC_*` too.
const KEPT_VARIABLES: [&str; 6] = ["PATH", "HOME", "LANG", "TERM", "USER", "TMPDIR"];

/// Variables for the cache folders of programs.
const CACHES: [(&str, &str); 6] = [
    ("XDG_CACHE_HOME", "xdg"),
    ("npm_config_cache", "npm"),
    ("PIP_CACHE_DIR", "pip"),
    ("GOCACHE", "go-build"),
    ("GRADLE_USER_HOME", "gradle"),
    ("YARN_CACHE_FOLDER", "yarn"),
];
/// The same for downloads that are no use without a network.
const DOWNLOADS: [(&str, &str); 2] = [("CARGO_HOME", "cargo"), ("GOMODCACHE", "go-mod")];

/// The environment of every command.
#[derive(Debug)]
pub(crate) struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// What may be passed on of this process's own.
    pub(crate) fn of_this_process() -> Self {
        Self::of(std::env::vars_os())
    }

    fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.filter(|(name, _)| is_kept(name)).collect())
    }

    /// The variables, each with its value.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

/// Additional environment of confined commands, mainly the shared cache folder of package managers. Without the
/// network, the user's own caches of cargo and go are used instead, because they already have the downloads.
pub(super) fn confined(folder: &Path, network: bool) -> Vec<(&'static str, OsString)> {
    let mut caches: Vec<(&'static str, OsString)> =
        CACHES.iter().map(|(name, at)| (*name, folder.join(at).into())).collect();
    let maven = format!("-Dmaven.repo.local={}", folder.join("maven").display());
    caches.push(("MAVEN_ARGS", maven.into()));
    // The repository around a workspace may be a separate mount.
    caches.push(("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1".into()));
    if network {
        caches.extend(DOWNLOADS.iter().map(|(name, at)| (*name, folder.join(at).into())));
    }
    caches
}

fn is_kept(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| KEPT_VARIABLES.contains(&name) || name.starts_with("LC_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_here() {
        let names = ["PATH", "OPENAI_API_KEY", "LC_ALL", "PATHX", "LD_PRELOAD", "BASH_ENV", "HOME"];
        let given = names.map(|name| (OsString::from(name), OsString::from("x")));
        let kept = Environment::of(given.into_iter());
        let kept: Vec<_> = kept.iter().map(|(name, _)| name).collect();
        assert_eq!(kept, ["PATH", "LC_ALL", "HOME"]);
    }
}
