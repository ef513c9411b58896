//! The user's own programs: what must be readable so that the programs in `PATH` work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::policy::SYSTEM;

/// Folders for programs; what these need is next to them.
const BINARIES: [&str; 4] = ["bin", "sbin", "shims", "condabin"];

/// The folders of a toolchain next to its programs. Anything else there may be a secret.
const PARTS: [&str; 32] = [
    "bin",
    "sbin",
    "lib",
    "lib32",
    "lib64",
    "libexec",
    "include",
    "share",
    "etc/ssl",
    "shims",
    "condabin",
    "conda-meta",
    "envs",
    "pkgs",
    "plugins",
    "versions",
    // What makes a folder a virtual environment of Python.
    "pyvenv.cfg",
    // Which of these pyenv, rbenv and nodenv take.
    "version",
    "installs",
    "candidates",
    "toolchains",
    "pkg",
    "src",
    "sdk",
    "jdk",
    "jre",
    "packages",
    "modules",
    "node_modules",
    "Cellar",
    "opt",
    "Library",
];

/// The programs in `~/.local`, which holds users' data as well.
const LOCAL: [&str; 7] =
    ["bin", "lib", "share/pipx", "share/uv", "share/mise", "share/pnpm", "share/fnm"];

/// What may be read for the sake of `PATH`.
pub(crate) fn readable(path: &[PathBuf], home: Option<&Path>) -> BTreeSet<PathBuf> {
    let home = home.and_then(|home| home.canonicalize().ok());
    let entries = path.iter().filter(|entry| entry.is_absolute());
    let entries = entries.filter_map(|entry| entry.canonicalize().ok());
    let foreign = entries.filter(|entry| !SYSTEM.iter().any(|system| entry.starts_with(system)));
    foreign.flat_map(|entry| around(entry, home.as_deref())).collect()
}

fn around(entry: PathBuf, home: Option<&Path>) -> Vec<PathBuf> {
    let is_for_binaries =
        entry.file_name().is_some_and(|name| BINARIES.iter().any(|known| name == *known));
    let Some(root) = entry.parent().filter(|_| is_for_binaries) else { return vec![entry] };
    let is_above_home = home.is_some_and(|home| home.starts_with(root));
    // `~/bin` must not open the home, nor `/srv/bin` all that is served.
    if is_above_home || root.components().count() < 3 {
        return vec![entry];
    }
    if home.is_some_and(|home| root == home.join(".local")) {
        return LOCAL.iter().map(|part| root.join(part)).collect();
    }
    let mut parts: Vec<_> =
        PARTS.iter().map(|part| root.join(part)).filter(|it| it.exists()).collect();
    parts.push(entry.clone());
    if root.file_name().is_some_and(|name| name == ".cargo") {
        // The programs in `~/.cargo/bin` are proxies for those in here.
        parts.extend(["registry", "git", "config.toml", "config"].map(|part| root.join(part)));
        let rustup = root.with_file_name(".rustup");
        // Without the last they would try to make it, before anything else.
        parts.extend(["toolchains", "settings.toml", "update-hashes"].map(|it| rustup.join(it)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[track_caller]
    fn check(files: &[&str], path: &[&str], expected: &[&str]) {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("home/me");
        fs::create_dir_all(&home).unwrap();
        for file in files {
            let file = home.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let path: Vec<_> = path.iter().map(|entry| home.join(entry)).collect();
        let found = readable(&path, Some(&home));
        let found: Vec<_> = found.iter().map(|path| path.strip_prefix(&home).unwrap()).collect();
        assert_eq!(found, expected.iter().map(Path::new).collect::<Vec<_>>());
    }

    #[test]
    fn a_toolchain_is_readable_without_its_credentials() {
        check(
            &[".cargo/bin/cargo", ".cargo/config.toml", ".cargo/credentials.toml"],
            &[".cargo/bin"],
            &[
                ".cargo/bin",
                ".cargo/config",
                ".cargo/config.toml",
                ".cargo/git",
                ".cargo/registry",
                ".rustup/settings.toml",
                ".rustup/toolchains",
                ".rustup/update-hashes",
            ],
        );
        check(
            &[".docker/bin/docker", ".docker/config.json", ".docker/contexts/x"],
            &[".docker/bin"],
            &[".docker/bin"],
        );
        check(
            &[".pyenv/shims/x", ".pyenv/versions/x", ".pyenv/version"],
            &[".pyenv/shims", "nowhere"],
            &[".pyenv/shims", ".pyenv/version", ".pyenv/versions"],
        );
        check(
            &["p/.venv/bin/python", "p/.venv/pyvenv.cfg", "p/.env"],
            &["p/.venv/bin"],
            &["p/.venv/bin", "p/.venv/pyvenv.cfg"],
        );
    }

    #[test]
    fn programs_in_the_home_do_not_open_it() {
        check(&["bin/x", ".ssh/id"], &["bin"], &["bin"]);
        check(&["tools/x", "tools/y"], &["tools"], &["tools"]);
        let local: BTreeSet<_> = LOCAL.iter().map(|part| format!(".local/{part}")).collect();
        let local: Vec<_> = local.iter().map(String::as_str).collect();
        check(&[".local/bin/x", ".local/share/keyrings/x"], &[".local/bin"], &local);
    }

    #[test]
    fn the_system_is_readable_anyway() {
        assert!(readable(&["/usr/bin".into(), "bin".into(), "".into()], None).is_empty());
    }
}
