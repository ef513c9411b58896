//! Suggests the next command from the user's history.

use super::context::TypedCommand;

/// A command to suggest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Suggestion {
    pub(super) command: String,
    /// From 0 to 1.
    pub(super) confidence: f64,
    pub(super) context: &'static str,
}

/// The most commands that are remembered.
const HISTORY_LIMIT: usize = 500;

/// The commands that were typed in this terminal, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    typed: Vec<TypedCommand>,
}

impl History {
    /// Adds the newest commands, which may overlap with known ones.
    pub(super) fn add(&mut self, recent: &[TypedCommand]) {
        let longest = recent.len().min(self.typed.len());
        let overlap = (0..=longest).rev().find(|n| self.typed.ends_with(&recent[..*n]));
        self.typed.extend_from_slice(&recent[overlap.unwrap_or(0)..]);
        self.typed.drain(..self.typed.len().saturating_sub(HISTORY_LIMIT));
    }

    /// The suggestion: a command that worked after the same failure, another command of the same program
    /// that worked, or the usual next command.
    pub(super) fn suggestion(&self) -> Option<Suggestion> {
        let last = self.typed.last()?;
        if last.failed() {
            self.after_failure(last).or_else(|| self.of_program(last))
        } else {
            self.usually_next(last)
        }
    }

    fn after_failure(&self, last: &TypedCommand) -> Option<Suggestion> {
        let mut pairs = self.typed.windows(2).rev();
        let helped = pairs.find(|pair| {
            pair[0].command == last.command
                && pair[0].failed()
                && pair[1].succeeded()
                && pair[1].command != last.command
        })?;
        let context = "worked after this command failed before";
        Some(Suggestion { command: helped[1].command.clone(), confidence: 0.85, context })
    }

    fn of_program(&self, last: &TypedCommand) -> Option<Suggestion> {
        let mut older = self.typed.iter().rev().skip(1);
        let similar = older.find(|typed| {
            typed.succeeded() && typed.program() == last.program() && typed.command != last.command
        })?;
        let context = "the last command of this program that worked";
        Some(Suggestion { command: similar.command.clone(), confidence: 0.5, context })
    }

    fn usually_next(&self, last: &TypedCommand) -> Option<Suggestion> {
        let after = self.typed.windows(2).filter(|pair| pair[0].command == last.command);
        let next: Vec<&str> = after.map(|pair| pair[1].command.as_str()).collect();
        let command = *next.last()?;
        let times = next.iter().filter(|typed| **typed == command).count();
        let confidence = times as f64 / (next.len() + 1) as f64;
        let context = "usually follows this command";
        (times >= 2 && command != last.command).then(|| Suggestion {
            command: command.to_owned(),
            confidence,
            context,
        })
    }
}

impl TypedCommand {
    fn failed(&self) -> bool {
        self.exit_code.is_some_and(|code| code != 0)
    }

    fn succeeded(&self) -> bool {
        self.exit_code == Some(0)
    }

    fn program(&self) -> Option<&str> {
        self.command.split_whitespace().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the suggestion after commands such as `0 ls` or `1 ls -x`.
    #[track_caller]
    fn check(typed: &[&str], then: Option<(&str, f64)>) {
        let one = |line: &&str| {
            let (code, command) = line.split_once(' ').unwrap();
            TypedCommand { command: command.into(), exit_code: code.parse().ok(), timestamp: None }
        };
        let typed: Vec<_> = typed.iter().map(one).collect();
        let mut history = History::default();
        // Clients send new commands together with older ones.
        for n in 1..=typed.len() {
            history.add(&typed[n.saturating_sub(3)..n]);
        }
        assert_eq!(history.typed, typed);
        let found = history.suggestion();
        let found = found.as_ref().map(|found| (found.command.as_str(), found.confidence));
        assert_eq!(found, then);
    }

    #[test]
    fn suggestions_follow_from_typed_commands() {
        check(&["0 ls"], None);
        check(&["1 cargo test"], None);
        check(&["1 make", "0 make clean", "1 make"], Some(("make clean", 0.85)));
        check(&["0 cargo build", "0 ls", "101 cargo test"], Some(("cargo build", 0.5)));
        check(
            &["0 git add .", "0 git commit", "0 git add .", "0 git commit", "0 git add ."],
            Some(("git commit", 2.0 / 3.0)),
        );
        check(&["0 a", "0 b", "0 a"], None);
    }
}
