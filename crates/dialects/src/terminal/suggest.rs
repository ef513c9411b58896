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

/// How many commands are looked at.
const HISTORY_LIMIT: usize = 500;

/// What was typed in this terminal, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    typed: Vec<TypedCommand>,
}

impl History {
    /// Takes the newest commands, which may overlap with what is known.
    pub(super) fn add(&mut self, recent: &[TypedCommand]) {
        let most = recent.len().min(self.typed.len());
        let overlap = (0..=most).rev().find(|n| self.typed.ends_with(&recent[..*n]));
        self.typed.extend_from_slice(&recent[overlap.unwrap_or(0)..]);
        self.typed.drain(..self.typed.len().saturating_sub(HISTORY_LIMIT));
    }

    /// What to suggest now: what helped after the same failure, what worked of the same program, or
    /// what usually comes next.
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
                && pair[1].worked()
                && pair[1].command != last.command
        })?;
        let context = "what you typed after this failed before, and it worked";
        Some(Suggestion { command: helped[1].command.clone(), confidence: 0.85, context })
    }

    fn of_program(&self, last: &TypedCommand) -> Option<Suggestion> {
        let mut older = self.typed.iter().rev().skip(1);
        let alike = older.find(|typed| {
            typed.worked() && typed.program() == last.program() && typed.command != last.command
        })?;
        let context = "the last one of this program that worked";
        Some(Suggestion { command: alike.command.clone(), confidence: 0.5, context })
    }

    fn usually_next(&self, last: &TypedCommand) -> Option<Suggestion> {
        let after = self.typed.windows(2).filter(|pair| pair[0].command == last.command);
        let next: Vec<&str> = after.map(|pair| pair[1].command.as_str()).collect();
        let command = *next.last()?;
        let times = next.iter().filter(|typed| **typed == command).count();
        let confidence = times as f64 / (next.len() + 1) as f64;
        let context = "what you usually type after this";
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

    fn worked(&self) -> bool {
        self.exit_code == Some(0)
    }

    fn program(&self) -> Option<&str> {
        self.command.split_whitespace().next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands as `0 ls` or `1 ls -x`.
    #[track_caller]
    fn check(typed: &[&str], then: Option<(&str, f64)>) {
        let one = |line: &&str| {
            let (code, command) = line.split_once(' ').unwrap();
            TypedCommand { command: command.into(), exit_code: code.parse().ok(), timestamp: None }
        };
        let typed: Vec<_> = typed.iter().map(one).collect();
        let mut history = History::default();
        // Clients send what is new together with what was there.
        for n in 1..=typed.len() {
            history.add(&typed[n.saturating_sub(3)..n]);
        }
        assert_eq!(history.typed, typed);
        let found = history.suggestion();
        let found = found.as_ref().map(|found| (found.command.as_str(), found.confidence));
        assert_eq!(found, then);
    }

    #[test]
    fn suggestions_come_from_what_was_typed() {
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
