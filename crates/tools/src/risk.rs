//! Estimates the risk of a command from its text, before it runs.
//!
//! The estimate informs the user who approves; it does not protect. A command can hide what it does in a script
//! or a variable, so everything that is not known to be harmless is at least [`Risk::Medium`]. The known
//! commands are data: see [`rows`].

use std::path::Path;

use quintet_kernel::tool::{Assessment, Risk};

mod outside;
mod rows;
mod subject;
mod words;

use rows::{FETCHERS, HARMFUL, HARMLESS, INTERPRETERS, NETWORK, Row, WRAPPERS};
use words::{Simple, split};

/// How deep commands inside of commands (`bash -c "…"`) are looked into.
const DEPTH_LIMIT: usize = 4;

/// How many words after `sudo` and the like are taken for a program: enough for any ordinary command,
/// and few enough that a hostile one cannot make the estimate slow.
const COMMANDS_LIMIT: usize = 64;

/// How many paths are named.
const NAMED_LIMIT: usize = 5;

/// Looks at commands that will run one after the other.
pub(crate) fn assess(workspace: &Path, commands: &[String]) -> Assessment {
    let mut findings = Findings::new(workspace);
    for command in commands {
        findings.judge(command, 0);
    }
    let harmless = commands.iter().all(|command| is_harmless(command));
    let (risk, reversible) = (findings.risk(harmless), findings.is_reversible(harmless));
    let preview = commands.iter().map(|command| format!("{}$ {command}", workspace.display()));
    let preview = preview.collect::<Vec<_>>().join("\n");
    let subject = subject::subject(commands, risk);
    let reasons = findings.reasons(harmless);
    Assessment { risk, reasons, reversible, preview, subject, settled: None }
}

/// What is found in commands.
struct Findings<'a> {
    workspace: &'a Path,
    rows: Vec<&'static Row>,
    network: bool,
    /// Paths that are not in the workspace.
    outside: Vec<String>,
}

impl<'a> Findings<'a> {
    fn new(workspace: &'a Path) -> Self {
        Self { workspace, rows: Vec::new(), network: false, outside: Vec::new() }
    }

    /// Finds what is harmful in a command line.
    fn judge(&mut self, command: &str, depth: usize) {
        let commands = split(command).commands;
        for simple in &commands {
            for program in programs(simple) {
                self.add(HARMFUL.iter().find(|row| row.fits(program)));
                self.network |= NETWORK.iter().any(|row| row.fits(program));
            }
            self.outside.extend(outside::paths(self.workspace, &simple.words));
            if depth < DEPTH_LIMIT {
                for script in scripts(simple) {
                    self.judge(script, depth + 1);
                }
            }
        }
        self.add(fed(&commands));
        self.add(command.contains(":|:&").then_some(&rows::FORK_BOMB));
    }

    fn add(&mut self, row: Option<&'static Row>) {
        let is_new = |row: &&Row| !self.rows.iter().any(|found| std::ptr::eq(*found, *row));
        self.rows.extend(row.filter(is_new));
    }

    fn risk(&self, harmless: bool) -> Risk {
        let calm = harmless && self.outside.is_empty() && !self.network;
        let usual = if calm { Risk::Low } else { Risk::Medium };
        // A harmful command counts even inside a harmless one.
        self.rows.iter().map(|row| row.risk).max().unwrap_or(usual)
    }

    fn is_reversible(&self, harmless: bool) -> bool {
        match &self.rows[..] {
            [] => harmless && !self.network,
            rows => rows.iter().all(|row| row.reversible),
        }
    }

    fn reasons(mut self, harmless: bool) -> Vec<String> {
        let mut reasons: Vec<_> = self.rows.iter().map(|row| row.reason.to_owned()).collect();
        if reasons.is_empty() {
            let usual = "runs a command; what it changes is not known";
            reasons.push(if harmless { "only reads" } else { usual }.to_owned());
        }
        if self.network {
            reasons.push("uses the network".to_owned());
        }
        self.outside.sort_unstable();
        self.outside.dedup();
        let outside = self.outside.iter().take(NAMED_LIMIT);
        reasons.extend(outside.map(|path| format!("names a path outside the workspace: {path}")));
        reasons
    }
}

/// The places in a simple command where a program and its arguments begin.
///
/// After `sudo`, `xargs` or `then` any word may be the program; taking each for one errs on the
/// safe side.
fn programs(simple: &Simple) -> impl Iterator<Item = &[String]> {
    let words = &simple.words[..];
    let start = words.iter().take_while(|word| is_assignment(word)).count();
    let wraps = words.get(start).is_some_and(|word| WRAPPERS.contains(&base(word)));
    let end = start + if wraps { COMMANDS_LIMIT } else { 1 };
    (start..end.min(words.len())).map(|at| &words[at..])
}

/// Arguments that are command lines themselves.
fn scripts(simple: &Simple) -> impl Iterator<Item = &str> {
    let runs = simple.words.iter().any(|word| INTERPRETERS.contains(&base(word)) || word == "eval");
    simple.words.iter().map(String::as_str).filter(move |word| runs && word.contains(' '))
}

/// Whether an interpreter is fed with what another command writes, and where that comes from.
fn fed(commands: &[Simple]) -> Option<&'static Row> {
    let interpreter = commands.iter().filter(|simple| simple.piped || simple.opens).any(|simple| {
        programs(simple).any(|words| INTERPRETERS.contains(&base(&words[0])) && has_no_file(words))
    });
    let fetched = commands
        .iter()
        .any(|simple| programs(simple).any(|words| FETCHERS.contains(&base(&words[0]))));
    match (interpreter, fetched) {
        (false, _) => None,
        (true, false) => Some(&rows::RUNS_OUTPUT),
        (true, true) => Some(&rows::RUNS_DOWNLOAD),
    }
}

/// Whether an interpreter called like this gets its script from its input or an expansion.
fn has_no_file(words: &[String]) -> bool {
    let is_none = |word: &String| {
        word.is_empty() || word == "<" || word.starts_with('-') || word.ends_with('$')
    };
    words[1..].iter().all(is_none) || words[1..].iter().any(|word| word == "-s")
}

/// Whether a command is a single one that is known to change nothing.
fn is_harmless(command: &str) -> bool {
    let commands = split(command).commands;
    let [simple] = &commands[..] else { return false };
    !simple.opens && !simple.writes && HARMLESS.iter().any(|row| row.fits(&simple.words))
}

/// True if a word before the program sets a variable: `a=`, `a+=`, `a[1]=`.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The name of a program without its directory.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests;
