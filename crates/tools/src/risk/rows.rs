//! The known commands, as data.

use quintet_kernel::tool::Risk::{self, Critical, High, Medium};

use super::base;

/// A kind of command.
#[derive(Debug)]
pub(super) struct Row {
    /// The program; `mkfs*` means any that begins so, `git log` a first argument too.
    program: &'static [&'static str],
    /// What must be among its arguments: one of each group.
    ///
    /// `-r` is also found in `-rf`, `--force` also in `--force=x`; `of=*` is what begins so.
    with: &'static [&'static [&'static str]],
    /// One of these must be too, if there are any.
    any: &'static [&'static str],
    /// Arguments that exclude a match.
    without: &'static [&'static str],
    pub(super) risk: Risk,
    pub(super) reversible: bool,
    pub(super) reason: &'static str,
}

impl Row {
    /// Whether it describes this command.
    pub(super) fn fits(&self, words: &[String]) -> bool {
        let Some((program, arguments)) = words.split_first() else { return false };
        let has = |wanted: &&str| arguments.iter().any(|argument| is(argument, wanted));
        let called = |name: &&str| match name.split_once(' ') {
            Some((name, first)) => {
                base(program) == name && arguments.first().is_some_and(|a| a == first)
            }
            None => matches(base(program), name),
        };
        self.program.iter().any(called)
            && self.with.iter().all(|group| group.iter().any(has))
            && (self.any.is_empty() || self.any.iter().any(has))
            && !self.without.iter().any(has)
    }
}

fn is(argument: &str, wanted: &str) -> bool {
    match wanted.as_bytes() {
        [b'-', b'-', ..] => argument.split('=').next() == Some(wanted),
        [b'-', letter] if letter.is_ascii_alphabetic() => {
            let letters = argument.strip_prefix('-').unwrap_or_default();
            !letters.starts_with('-') && letters.as_bytes().contains(letter)
        }
        _ => matches(argument, wanted),
    }
}

fn matches(word: &str, pattern: &str) -> bool {
    pattern.strip_suffix('*').map_or(word == pattern, |start| word.starts_with(start))
}

const fn row(
    program: &'static [&'static str],
    with: &'static [&'static [&'static str]],
    risk: Risk,
    reason: &'static str,
) -> Row {
    Row { program, with, any: &[], without: &[], risk, reversible: false, reason }
}

/// A program with one of these among its arguments, or with any arguments if the list is empty.
const fn network(program: &'static [&'static str], first: &'static [&'static str]) -> Row {
    let (risk, reason) = (Medium, "uses the network");
    Row { program, with: &[], any: first, without: &[], risk, reversible: false, reason }
}

const fn harmless(program: &'static [&'static str], without: &'static [&'static str]) -> Row {
    let (risk, reason) = (Risk::Low, "only reads");
    Row { program, with: &[], any: &[], without, risk, reversible: true, reason }
}

/// Commands that run another command, given among their words.
pub(super) const WRAPPERS: &[&str] = &[
    "sudo", "doas", "su", "env", "nohup", "time", "timeout", "nice", "ionice", "setsid", "stdbuf",
    "xargs", "parallel", "find", "watch", "exec", "command", "builtin", "ssh", "if", "then",
    "elif", "else", "while", "until", "do", "!", "{",
];

/// Programs that run their input.
pub(super) const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "fish", "python", "python3", "perl", "ruby", "node", "php",
];

/// Interpreters whose scripts are command lines.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "fish"];

/// Words at the place of a program that change what follows them or comes later, or that no shell
/// takes for a program.
pub(super) const MEANINGFUL: &[&str] = &[
    ".", "source", "eval", "exec", "alias", "unalias", "trap", "hash", "enable", "export",
    "declare", "typeset", "local", "readonly", "set", "unset", "shopt", "function", "coproc",
    "select", "case", "esac", "for", "in", "done", "fi", "}", "[[", "]]",
];

/// Folders of the system's programs.
pub(super) const SYSTEM: &[&str] =
    &["/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"];

/// Programs that download.
pub(super) const FETCHERS: &[&str] = &["curl", "wget", "fetch", "aria2c", "nc"];

pub(super) static RUNS_DOWNLOAD: Row =
    row(&[], &[], Critical, "runs a program straight from the network");
pub(super) static FORK_BOMB: Row = row(&[], &[], Critical, "starts processes without end");
pub(super) static RUNS_OUTPUT: Row = row(&[], &[], High, "runs what another command writes");

const RECURSIVE: &[&str] = &["-r", "-R", "--recursive"];
const FORCE: &[&str] = &["-f", "--force"];
const EVERYTHING: &[&str] =
    &["/", "/*", "~", "~/", "~/*", "$HOME", "$HOME/", "$HOME/*", "${HOME}", "--no-preserve-root"];
const DISKS: &[&str] =
    &[">/dev/sd*", ">/dev/nvme*", ">/dev/vd*", ">/dev/hd*", ">/dev/mmcblk*", ">/dev/disk*"];

/// Commands that can lose something.
///
/// Of the rows that fit a command the first is its reason, so the worst of a program come first.
pub(super) static HARMFUL: &[Row] = &[
    row(&["*"], &[DISKS], Critical, "writes to a disk"),
    row(&["rm"], &[RECURSIVE, EVERYTHING], Critical, "removes everything"),
    row(&["rm"], &[RECURSIVE, FORCE], High, "removes directories without asking"),
    row(&["rm"], &[RECURSIVE], High, "removes directories"),
    row(&["rm", "unlink", "rmdir"], &[], Medium, "removes files"),
    row(&["shred"], &[], High, "overwrites files"),
    row(&["truncate"], &[], High, "cuts files short"),
    row(&["find"], &[&["-delete"]], High, "removes the files it finds"),
    row(&["mkfs*", "wipefs", "fdisk", "sfdisk", "parted"], &[], Critical, "formats a disk"),
    row(&["dd"], &[&["of=/dev/*"]], Critical, "writes to a device"),
    row(&["dd"], &[&["of=*"]], High, "overwrites a file"),
    row(&["git"], &[&["reset"], &["--hard"]], High, "throws away changes that are not committed"),
    row(&["git"], &[&["clean"], FORCE], High, "removes files that git does not know"),
    row(&["git"], &[&["checkout", "restore"], &["--", "."]], High, "throws away changes to files"),
    row(
        &["git"],
        &[&["push"], &["-f", "--force", "--force-with-lease", "--mirror", "+*"]],
        High,
        "replaces the history of a remote branch",
    ),
    row(&["git"], &[&["push"], &["-d", "--delete", ":*"]], High, "removes a remote branch"),
    row(&["git"], &[&["branch"], &["-D"]], High, "removes a branch that may not be merged"),
    row(&["git"], &[&["stash"], &["drop", "clear"]], High, "throws away stashed changes"),
    row(&["git"], &[&["filter-branch", "filter-repo"]], High, "rewrites history"),
    row(&["sudo", "doas", "su", "pkexec"], &[], High, "runs as another user"),
    row(
        &["chmod", "chown", "chgrp"],
        &[RECURSIVE, EVERYTHING],
        Critical,
        "changes the owner or mode of everything",
    ),
    row(
        &["chmod"],
        &[RECURSIVE, &["777", "0777", "a+rwx", "ugo+rwx"]],
        High,
        "lets everybody write to a whole tree",
    ),
    row(&["chown", "chgrp"], &[RECURSIVE], High, "changes the owner of a whole tree"),
    row(&["shutdown", "reboot", "halt", "poweroff"], &[], Critical, "stops the machine"),
    row(&["init", "telinit"], &[&["0", "6"]], Critical, "stops the machine"),
    row(&["systemctl"], &[&["poweroff", "reboot", "halt", "kexec"]], Critical, "stops the machine"),
    row(&["systemctl"], &[&["stop", "disable", "mask"]], High, "stops a service"),
    row(
        &["kill"],
        &[&["-1"], &["-9", "-KILL", "-SIGKILL", "-s", "--"]],
        Critical,
        "ends every process",
    ),
    row(&["killall", "pkill"], &[], High, "ends processes by name"),
    row(&["crontab"], &[&["-r"]], High, "removes all scheduled jobs"),
    row(&["docker", "podman"], &[&["prune"]], High, "removes containers, images or volumes"),
    row(&["kubectl"], &[&["delete"]], High, "removes things from a cluster"),
    row(&["terraform", "tofu"], &[&["destroy"]], High, "removes infrastructure"),
    row(
        &["npm", "cargo", "yarn", "pnpm", "twine"],
        &[&["publish", "upload"]],
        High,
        "publishes a package",
    ),
];

/// Commands that use the network, as far as their names tell.
pub(super) static NETWORK: &[Row] = &[
    network(&["curl", "wget", "fetch", "aria2c", "nc", "ncat", "socat", "telnet", "ftp"], &[]),
    network(&["ssh", "scp", "sftp", "rsync", "ping", "dig", "nslookup", "host"], &[]),
    network(&["git"], &["push", "pull", "fetch", "clone", "ls-remote", "submodule"]),
    network(&["gh", "glab", "hub", "aws", "gcloud", "az", "kubectl", "helm"], &[]),
    network(&["npm", "pnpm", "yarn", "bun"], &["install", "i", "ci", "add", "update", "publish"]),
    network(&["npx", "bunx", "uvx", "pipx"], &[]),
    network(&["pip", "pip3", "uv", "poetry"], &["install", "add", "sync", "download", "publish"]),
    network(&["cargo"], &["install", "fetch", "update", "add", "search", "publish", "login"]),
    network(&["go"], &["get", "install", "mod"]),
    network(&["gem", "bundle", "composer"], &["install", "update", "push"]),
    network(&["apt", "apt-get", "dnf", "yum", "apk", "pacman", "zypper", "brew"], &[]),
    network(&["docker", "podman"], &["pull", "push", "login", "build"]),
    network(&["terraform", "tofu"], &["init", "apply", "plan", "destroy"]),
];

/// Commands that change nothing.
pub(super) static HARMLESS: &[Row] = &[
    harmless(&["ls", "cat", "pwd", "echo", "printf", "head", "tail", "wc", "grep"], &[]),
    harmless(&["which", "whoami", "id", "uname", "du", "df", "stat", "true"], &[]),
    harmless(&["basename", "dirname", "realpath", "readlink"], &[]),
    harmless(
        &["git status", "git diff", "git log", "git show", "git rev-parse"],
        &["--output", "--ext-diff", "--textconv"],
    ),
];
