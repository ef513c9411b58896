//! What one command is allowed beyond the sandbox, after a person agreed to exactly that.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Mode, Sandbox};

/// Permissions that a command requests, or would have needed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Permissions {
    /// The network of the machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) network: bool,
    /// Permissions, owners and times of files by their names, wherever these are. Asked for only where
    /// there are no namespaces.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) attributes: bool,
    /// Files and folders to read, as absolute paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) read: Vec<PathBuf>,
    /// Files and folders to read and write, as absolute paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) write: Vec<PathBuf>,
}

impl Permissions {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each in words for people, which stay the same because answers are remembered by them.
    pub(crate) fn words(&self) -> Vec<String> {
        let network = self.network.then(|| "use the network".to_owned());
        let attributes =
            self.attributes.then(|| "change permissions and times of any file of yours".to_owned());
        let read = self.read.iter().map(|path| format!("read {}", path.display()));
        let write = self.write.iter().map(|path| format!("write {}", path.display()));
        network.into_iter().chain(attributes).chain(read).chain(write).collect()
    }

    /// Adds what another one has.
    pub(super) fn extend(&mut self, other: Self) {
        self.network |= other.network;
        self.attributes |= other.attributes;
        let add = |all: &mut Vec<PathBuf>, more: Vec<PathBuf>| {
            for path in more {
                if !all.contains(&path) {
                    all.push(path);
                }
            }
        };
        add(&mut self.read, other.read);
        add(&mut self.write, other.write);
    }

    /// What of it the sandbox does not allow anyway, with links followed.
    pub(crate) fn beyond(&self, sandbox: &Sandbox) -> Result<Self, String> {
        if sandbox.mode == Mode::Off {
            return Ok(Self::default());
        }
        let real = |asked: &[PathBuf], allowed: &[&[PathBuf]]| -> Result<Vec<PathBuf>, String> {
            let mut paths = Vec::new();
            for path in asked {
                let path =
                    openable(path, &sandbox.closed).map_err(|why| format!("permissions: {why}"))?;
                let is_allowed = |place: &PathBuf| path.starts_with(place);
                if !allowed.iter().copied().flatten().any(is_allowed) && !paths.contains(&path) {
                    paths.push(path);
                }
            }
            Ok(paths)
        };
        Ok(Self {
            network: self.network && !sandbox.network,
            attributes: self.attributes && sandbox.mode == Mode::Require,
            read: real(&self.read, &[&sandbox.extra_read, &sandbox.extra_write])?,
            write: real(&self.write, &[&sandbox.extra_write])?,
        })
    }

    /// The sandbox with a door for this.
    pub(super) fn open(&self, sandbox: &Sandbox) -> Sandbox {
        let mut sandbox = sandbox.clone();
        sandbox.network |= self.network;
        sandbox.extra_read.extend(self.read.iter().cloned());
        sandbox.extra_write.extend(self.write.iter().cloned());
        sandbox
    }
}

/// A path that may be opened, with links followed; nothing in or around closed ones may be.
pub(crate) fn openable(path: &Path, closed: &[PathBuf]) -> Result<PathBuf, String> {
    let shown = path.display();
    if !path.is_absolute() {
        return Err(format!("not an absolute path: {shown}"));
    }
    let real = path.canonicalize().map_err(|error| format!("{shown}: {error}"))?;
    let is_closed = |closed: &PathBuf| {
        let closed = closed.canonicalize().unwrap_or_else(|_| closed.clone());
        real.starts_with(&closed) || closed.starts_with(&real)
    };
    if closed.iter().any(is_closed) {
        return Err(format!("{shown} holds the daemon's own data, which stays closed"));
    }
    if real.parent().is_none() {
        return Err("the whole file system cannot be opened".to_owned());
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(json: serde_json::Value) -> Permissions {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn what_is_allowed_anyway_is_not_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().canonicalize().unwrap();
        let sandbox =
            Sandbox { network: true, extra_write: vec![own.clone()], ..Sandbox::default() };
        let more = asked(serde_json::json!({ "network": true, "write": [own], "read": ["/usr"] }));
        assert_eq!(more.beyond(&sandbox).unwrap().words(), ["read /usr"]);
        let off = Sandbox { mode: Mode::Off, ..Sandbox::default() };
        assert!(more.beyond(&off).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_opened_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let sandbox = Sandbox { closed: vec![data.clone()], ..Sandbox::default() };
        let check = |path: &Path, why: &str| {
            let refused = asked(serde_json::json!({ "write": [path] })).beyond(&sandbox);
            assert!(refused.as_ref().is_err_and(|text| text.contains(why)), "{refused:?}");
        };
        check(&data, "daemon's own data");
        check(folder.path(), "daemon's own data");
        check(Path::new("relative"), "not an absolute path");
        check(Path::new("/no/such"), "No such file");
        let open = Sandbox::default();
        let whole = asked(serde_json::json!({ "read": ["/"] })).beyond(&open);
        assert!(whole.is_err_and(|text| text.contains("whole file system")));
    }
}
