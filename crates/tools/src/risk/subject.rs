//! What rules and remembered answers match: the simple commands of a line, and whether the line may do more than
//! these (it is then opaque).
//!
//! A rule that refuses or asks matches if one command does, so this finds more commands than may run. A rule that
//! allows must match all of them, and the line must not be opaque; so everything uncertain makes it opaque and
//! needs approval.

use std::collections::{BTreeSet, HashSet};

use quintet_kernel::tool::{CallSubject, Risk};

use super::rows::{MEANINGFUL, SHELLS, SYSTEM, WRAPPERS};
use super::words::{Simple, split};
use super::{COMMANDS_LIMIT, DEPTH_LIMIT, base, is_assignment};

/// The most text that is taken down of all commands.
const TEXT_LIMIT: usize = 64 * 1024;
/// The longest text that is taken for what calls have in common.
const SUBJECT_LIMIT: usize = 200;

/// What a shell itself does with the words that follow.
const RUNNERS: [&str; 3] = ["eval", ".", "source"];

/// What commands are about that are this bad.
pub(super) fn subject(commands: &[String], risk: Risk) -> CallSubject {
    let mut found = SimilarCommand { sure: true, room: TEXT_LIMIT, ..SimilarCommand::default() };
    for command in commands {
        found.line(command, 0);
    }
    let similar = found.similar().filter(|_| risk < Risk::High);
    let (commands, opaque) = (found.commands, !found.sure);
    CallSubject { commands, opaque, similar, ..CallSubject::default() }
}

#[derive(Default)]
struct SimilarCommand {
    commands: Vec<String>,
    /// The same, to find them in.
    known: HashSet<String>,
    /// Each program with the arguments that determine what it does.
    common: BTreeSet<String>,
    sure: bool,
    room: usize,
}

impl SimilarCommand {
    fn line(&mut self, command: &str, depth: usize) {
        let line = split(command);
        self.sure &= line.sure;
        for simple in &line.commands {
            self.simple(simple, depth);
        }
    }

    fn simple(&mut self, simple: &Simple, depth: usize) {
        let start = simple.words.iter().take_while(|word| is_assignment(word)).count();
        let words = &simple.words[start..];
        let Some((program, arguments)) = words.split_first() else {
            // Variables are set, which may change what any other command does.
            self.sure = false;
            return;
        };
        self.sure &= start == 0 && !simple.writes && !is_doubtful(program);
        self.add(words);
        let wraps = WRAPPERS.contains(&base(program)) || RUNNERS.contains(&program.as_str());
        if wraps {
            self.sure = false;
            let inside = (1..words.len().min(COMMANDS_LIMIT)).map(|at| &words[at..]);
            inside.filter(|words| !words[0].starts_with('-')).for_each(|words| self.add(words));
        }
        // After `sudo` and the like the shell may be any of the words.
        let shell = SHELLS.contains(&base(program)) || wraps;
        let given = |word: &String| word.starts_with('-') && word.contains('c');
        if shell && (wraps || arguments.iter().any(given)) {
            self.sure = false;
            self.scripts(arguments, depth);
        }
    }

    /// Arguments that may be command lines.
    fn scripts(&mut self, arguments: &[String], depth: usize) {
        let is_script = |word: &&String| !word.starts_with('-') && word.contains([' ', ';', '\n']);
        for script in arguments.iter().filter(is_script).filter(|_| depth < DEPTH_LIMIT) {
            self.line(script, depth + 1);
        }
        if let Some(first) = arguments.iter().find(|word| !word.starts_with('-')) {
            self.add(std::slice::from_ref(first));
        }
    }

    /// Takes a command down, as its words with a blank between them.
    fn add(&mut self, words: &[String]) {
        let [program, arguments @ ..] = words else { return };
        let (folder, name) = program.rsplit_once('/').unwrap_or(("", program));
        let system = folder.is_empty() && !program.starts_with('/') || SYSTEM.contains(&folder);
        let own = !program.starts_with('/') && !program.contains("..");
        // A file in the workspace is not the system's program of that name.
        let as_given = (!system).then_some(program.as_str());
        let by_name = (system || !own).then_some(name);
        for program in as_given.into_iter().chain(by_name) {
            let text = [program].into_iter().chain(arguments.iter().map(String::as_str));
            self.take(text.collect::<Vec<_>>().join(" "));
            let common = [program].into_iter().chain(meaningful_arguments(arguments));
            self.common.insert(format!("`{}`", common.collect::<Vec<_>>().join(" ")));
        }
    }

    fn take(&mut self, text: String) {
        match self.room.checked_sub(text.len()) {
            _ if self.known.contains(&text) => {}
            Some(room) => {
                self.room = room;
                self.known.insert(text.clone());
                self.commands.push(text);
            }
            None => self.sure = false,
        }
    }

    fn similar(&self) -> Option<String> {
        let common: Vec<_> = self.common.iter().map(String::as_str).collect();
        let text = format!("commands {}", common.join(", "));
        (self.sure && !common.is_empty() && text.len() <= SUBJECT_LIMIT).then_some(text)
    }
}

/// The arguments that determine what a command does: the first word, and every option with the word after it, which
/// may be its value.
fn meaningful_arguments(arguments: &[String]) -> impl Iterator<Item = &str> {
    let is_option = |at: usize| arguments[at].starts_with('-');
    let first = (0..arguments.len()).find(|at| !is_option(*at));
    let tells = move |at: &usize| {
        is_option(*at) || Some(*at) == first || at.checked_sub(1).is_some_and(is_option)
    };
    (0..arguments.len()).filter(tells).map(|at| arguments[at].as_str())
}

/// Whether a shell may take this for something else than the program of that name.
fn is_doubtful(program: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || "*?[~".contains(c);
    program.is_empty() || MEANINGFUL.contains(&program) || program != "[" && program.contains(odd)
}

#[cfg(test)]
mod tests;
