//! How bad a command can get, judged from its text before anybody runs it.
//!
//! This informs the person who is asked; it does not protect. A command can hide what it does in
//! a script or a variable, which is why whatever is not known to be harmless is at least
//! [`Risk::Medium`]. What counts as harmful or harmless is data: see [`rows`].

use std::path::Path;

use quintet_kernel::tool::{Assessment, Risk, Subject};

mod rows;
mod words;

use rows::{FETCHERS, HARMFUL, HARMLESS, INTERPRETERS, Row, WRAPPERS};
use words::{Simple, split};

/// How deep commands inside of commands (`bash -c "…"`) are looked into.
const DEEPEST: usize = 4;

/// How many words after `sudo` and the like are taken for a program: enough for any honest command,
/// and few enough that a dishonest one cannot keep us busy.
const WIDEST: usize = 64;

/// Looks at commands that will run one after the other.
pub(crate) fn assess(workspace: &Path, commands: &[String]) -> Assessment {
    let mut findings = Findings::default();
    for command in commands {
        judge(command, &mut findings, 0);
    }
    let harmless = commands.iter().all(|command| is_harmless(command));
    let preview = commands.iter().map(|command| format!("{}$ {command}", workspace.display()));
    findings.assessment(harmless, preview.collect::<Vec<_>>().join("\n"))
}

#[derive(Default)]
struct Findings(Vec<&'static Row>);

impl Findings {
    fn extend(&mut self, row: Option<&'static Row>) {
        let is_new = |row: &&Row| !self.0.iter().any(|found| std::ptr::eq(*found, *row));
        self.0.extend(row.filter(is_new));
    }

    fn assessment(self, harmless: bool, preview: String) -> Assessment {
        if self.0.is_empty() {
            let (risk, reason) = if harmless {
                (Risk::Low, "only reads")
            } else {
                (Risk::Medium, "runs a command; what it changes is not known")
            };
            return Assessment {
                risk,
                reasons: vec![reason.to_owned()],
                reversible: harmless,
                preview,
                subject: Subject::default(),
                settled: None,
            };
        }
        let worst = self.0.iter().map(|row| row.risk).max().unwrap_or(Risk::Medium);
        let reasons = self.0.iter().map(|row| row.reason.to_owned()).collect();
        let reversible = self.0.iter().all(|row| row.reversible);
        Assessment {
            risk: worst,
            reasons,
            reversible,
            preview,
            subject: Subject::default(),
            settled: None,
        }
    }
}

/// Finds what is harmful in a command line.
fn judge(command: &str, findings: &mut Findings, depth: usize) {
    let commands = split(command);
    for simple in &commands {
        for program in programs(simple) {
            findings.extend(HARMFUL.iter().find(|row| row.fits(program)));
        }
        if depth < DEEPEST {
            for script in scripts(simple) {
                judge(script, findings, depth + 1);
            }
        }
    }
    findings.extend(fed(&commands));
    findings.extend(command.contains(":|:&").then_some(&rows::FORK_BOMB));
}

/// The places in a simple command where a program and its arguments begin.
///
/// After `sudo`, `xargs` or `then` any word may be the program; taking each for one errs on the
/// safe side.
fn programs(simple: &Simple) -> impl Iterator<Item = &[String]> {
    let words = &simple.words[..];
    let start = words.iter().take_while(|word| is_assignment(word)).count();
    let wraps = words.get(start).is_some_and(|word| WRAPPERS.contains(&base(word)));
    let end = start + if wraps { WIDEST } else { 1 };
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
    let commands = split(command);
    let [simple] = &commands[..] else { return false };
    !simple.opens && !simple.writes && HARMLESS.iter().any(|row| row.fits(&simple.words))
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The name of a program without its directory.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests;
