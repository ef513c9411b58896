//! Recognises what the sandbox blocked, so that the result of a command names the setting that allows it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Permissions, Policy, Sandbox};

/// The most hints for one command.
const HINTS_LIMIT: usize = 3;
/// The number of last lines that are searched.
const LINES_LIMIT: usize = 200;

/// Messages of programs that cannot resolve a name or reach a server.
const NETWORK: [&str; 9] = [
    "Could not resolve host",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "failed to lookup address",
    "dns error",
    "getaddrinfo",
    "ENOTFOUND",
    "EAI_AGAIN",
];
/// Messages of programs that cannot write a file.
const WRITING: [&str; 6] = [
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "EACCES",
    "EPERM",
    "EROFS",
];
/// Messages of programs that cannot change permissions, owners or times of a file: seccomp refuses that with
/// another error than Landlock.
const ATTRIBUTES: [&str; 10] = [
    "chmod",
    "permissions of",
    "setting permissions",
    "change mode",
    "change ownership",
    "chown",
    "utime",
    "times of",
    "fchmod",
    // Python names the file, and Landlock would have said something else.
    "not permitted: '",
];
const REFUSED: [&str; 2] = ["Operation not permitted", "EPERM"];
/// Messages of programs that cannot see a file.
const READING: [&str; 3] = ["No such file or directory", "ENOENT", "not found"];

/// What the sandbox blocked.
#[derive(Debug, Default)]
pub(crate) struct Blocked {
    /// Each in a sentence, with the setting that allows it.
    pub(crate) hints: Vec<String>,
    /// All of it, as the command may ask for it.
    pub(crate) permissions: Permissions,
}

/// One blocked access.
struct Denial {
    hint: String,
    permissions: Permissions,
}

/// Messages of programs that cannot create a file.
const CREATING: [&str; 5] = ["cannot touch", "cannot create", "cannot open", "tee:", "mkdir:"];
/// The prefixes of a shell's own messages.
const SHELLS: [&str; 2] = ["/bin/bash: ", "/bin/sh: "];

/// What the sandbox blocked in a failed command, without what no permission can allow. `keys` is the section of the
/// configuration whose `network`, `read` and `write` would have allowed it.
pub(super) fn blocked(policy: &Policy, sandbox: &Sandbox, keys: &str, output: &str) -> Blocked {
    let mut blocked = Blocked::default();
    let lines: Vec<_> = output.lines().rev().take(LINES_LIMIT).collect();
    for line in lines.into_iter().rev() {
        let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
        let wall = if !policy.network && has(&NETWORK) {
            let hint = format!("the sandbox has no network: `{keys}.network = true` allows it");
            Some(Denial {
                hint,
                permissions: Permissions { network: true, ..Permissions::default() },
            })
        } else if !policy.attributes
            && (has(&REFUSED) && has(&ATTRIBUTES) || is_not_executable(policy, line))
        {
            Some(Denial {
                hint: "here the sandbox keeps permissions and times of files as they are, also those of \
                       what `ld` links: `sandbox.mode = \"prefer\"` allows changing them"
                    .to_owned(),
                permissions: Permissions { attributes: true, ..Permissions::default() },
            })
        } else if has(&WRITING) {
            let mut paths = paths(policy, line).into_iter().rev();
            paths.find_map(|path| denied(policy, keys, &path, true))
        } else if has(&READING) {
            let is_write = has(&CREATING);
            let mut paths = paths(policy, line).into_iter().rev();
            paths.find_map(|path| denied(policy, keys, &path, is_write))
        } else {
            None
        };
        let wall = wall.filter(|wall| wall.permissions.beyond(sandbox).is_ok());
        if let Some(wall) = wall.filter(|wall| !blocked.hints.contains(&wall.hint)) {
            blocked.hints.push(wall.hint);
            blocked.permissions.extend(wall.permissions);
        }
        if blocked.hints.len() == HINTS_LIMIT {
            break;
        }
    }
    blocked
}

/// True if a program in the workspace could not be started because it is not executable: its creator could not
/// change its permissions.
fn is_not_executable(policy: &Policy, line: &str) -> bool {
    let shell = line.strip_suffix(": Permission denied").and_then(|it| it.rsplit(": ").next());
    let cargo =
        line.split_once("could not execute process `").and_then(|(_, it)| it.split('`').next());
    shell.or(cargo).and_then(|it| it.split(' ').next()).is_some_and(|program| {
        let place = policy.workspace.join(program);
        let mode =
            place.metadata().map(|found| (found.is_file(), found.permissions().mode() & 0o111));
        place.starts_with(&policy.workspace) && mode.is_ok_and(|mode| mode == (true, 0))
    })
}

/// The paths in a line that are absolute or lead out of the workspace.
fn paths(policy: &Policy, line: &str) -> Vec<PathBuf> {
    let line = SHELLS.iter().find_map(|shell| line.strip_prefix(shell)).unwrap_or(line);
    let words = line.split(|c: char| c.is_whitespace() || "'\"`‘’“”()[]<>,;:=".contains(c));
    let workspace = policy.write.first();
    let place = |word: &str| {
        let word = word.trim_end_matches(['.', '!']);
        let above = word.strip_prefix("../");
        let outside = above.and_then(|rest| Some(workspace?.parent()?.join(rest)));
        let absolute = word.starts_with('/') && word.len() > 1;
        outside.or_else(|| absolute.then(|| PathBuf::from(word)))
    };
    words.filter_map(place).collect()
}

/// What opens a path, if it is the sandbox that closes it.
fn denied(policy: &Policy, keys: &str, path: &Path, is_write: bool) -> Option<Denial> {
    let within = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
    if within(&policy.write) || path.starts_with("/proc") || path.starts_with("/dev") {
        return None;
    }
    let is_there = path.symlink_metadata().is_ok();
    if within(&policy.private()) && !is_there {
        return None;
    }
    if !within(&policy.read) && is_there {
        let permissions = Permissions { read: vec![path.to_owned()], ..Permissions::default() };
        let path = path.display();
        let hint =
            format!("the sandbox hides {path}: `{keys}.read = [\"{path}\"]` allows reading it");
        return Some(Denial { hint, permissions });
    }
    let folder = if path.is_dir() { path } else { path.parent()? };
    if !is_write && !within(&policy.read) && folder.is_dir() && !within(&policy.private()) {
        return denied(policy, keys, folder, false);
    }
    (is_write && folder.is_dir()).then(|| {
        let permissions = Permissions { write: vec![folder.to_owned()], ..Permissions::default() };
        let folder = folder.display();
        let hint = format!(
            "the sandbox keeps {folder} as it is: `{keys}.write = [\"{folder}\"]` allows writing it"
        );
        Denial { hint, permissions }
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, Mode};
    use super::*;

    fn check(line: &str, expected: &[&str]) {
        let mut policy = Policy::nothing(Limits::default());
        (policy.mode, policy.namespaces) = (Mode::Require, true);
        policy.read = vec!["/usr".into(), "/etc".into()];
        policy.write = vec!["/home/me/space".into()];
        policy.attributes = true;
        let found = blocked(&policy, &Sandbox::default(), "sandbox", line);
        assert_eq!(found.hints, expected, "{line}");
    }

    #[test]
    fn what_was_denied_is_named_with_its_setting() {
        check("all is well\n", &[]);
        let network = "the sandbox has no network: `sandbox.network = true` allows it";
        check("curl: (6) Could not resolve host: example.org\ndns error\n", &[network]);
        let write =
            "the sandbox keeps /usr as it is: `sandbox.write = [\"/usr\"]` allows writing it";
        check("touch: cannot touch '/usr/x': Read-only file system", &[write]);
        let read = "the sandbox hides /var: `sandbox.read = [\"/var\"]` allows reading it";
        check("ls: cannot access '/var': No such file or directory", &[read]);
        check("cat: /no/such/file: No such file or directory", &[]);
        check("/home/me/space/run: Permission denied", &[]);
        let write =
            "the sandbox keeps /etc as it is: `sandbox.write = [\"/etc\"]` allows writing it";
        check("/bin/bash: line 1: /etc/zzz: Read-only file system", &[write]);
        check("mv: cannot move '/usr/bin/x' to '/etc/x': Permission denied", &[write]);
        check("touch: cannot touch '/etc/new': No such file or directory", &[write]);
        check("/bin/bash: line 1: ../nowhere/new: Permission denied", &[]);
    }

    #[test]
    fn what_could_not_be_made_executable_is_recognised() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("c"), "").unwrap();
        let mut policy = Policy::nothing(Limits::default());
        policy.workspace = dir.path().to_owned();
        policy.write = vec![dir.path().to_owned()];
        let mut check = |line: &str, attributes: bool, expected: bool| {
            policy.attributes = attributes;
            let found = blocked(&policy, &Sandbox::default(), "sandbox", line);
            assert_eq!(found.permissions.attributes, expected, "{line}");
        };
        for line in [
            "/bin/bash: line 1: ./c: Permission denied",
            "make: ./c: Permission denied",
            "error: could not execute process `c --flag` (never executed)",
            "chmod: changing permissions of 'c': Operation not permitted",
            "PermissionError: [Errno 1] Operation not permitted: 'c'",
            "tar: c: Cannot change mode to rwxr-xr-x: Operation not permitted",
            "npm error EPERM: operation not permitted, chmod '/w/node_modules/x/cli.js'",
        ] {
            check(line, false, true);
            check(line, true, false);
        }
        for line in [
            "/bin/bash: line 1: ./nowhere: Permission denied",
            "PermissionError: [Errno 1] Operation not permitted",
            "cat: /etc/shadow: Permission denied",
        ] {
            check(line, false, false);
        }
    }
}
