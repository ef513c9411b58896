//! What a command gets to see of the daemon's environment: little, and no secrets.

use std::ffi::{OsStr, OsString};

/// The variables that are passed on; `LC_*` too.
const KEPT: [&str; 6] = ["PATH", "HOME", "LANG", "TERM", "USER", "TMPDIR"];

/// The environment of every command.
#[derive(Debug)]
pub(super) struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// What may be passed on of this process's own.
    pub(super) fn of_this_process() -> Self {
        Self::of(std::env::vars_os())
    }

    fn of(variables: impl Iterator<Item = (OsString, OsString)>) -> Self {
        Self(variables.filter(|(name, _)| is_kept(name)).collect())
    }

    /// Its variables.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

fn is_kept(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| KEPT.contains(&name) || name.starts_with("LC_"))
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
