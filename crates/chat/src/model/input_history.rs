//! What was typed before.

/// How much is remembered.
pub(crate) const KEPT: usize = 1000;

/// What was typed before, and where in it one looks.
#[derive(Debug, Default)]
pub(crate) struct InputHistory {
    lines: Vec<String>,
    /// How far back one looks, and what was being typed before that.
    back: usize,
    draft: String,
    /// What is new since it was last taken to be kept.
    fresh: Vec<String>,
}

impl InputHistory {
    pub(crate) fn new(lines: Vec<String>) -> Self {
        Self { lines, ..Self::default() }
    }

    /// What is to be kept now.
    pub(crate) fn take_fresh(&mut self) -> Vec<String> {
        std::mem::take(&mut self.fresh)
    }

    /// Remembers a line, and keeps it unless it is private.
    pub(super) fn remember(&mut self, line: &str) {
        self.back = 0;
        self.draft.clear();
        let text = line.trim().to_owned();
        if self.lines.last() == Some(&text) {
            return;
        }
        if !is_private(line) {
            self.fresh.push(text.clone());
        }
        self.lines.push(text);
        if self.lines.len() > KEPT {
            self.lines.remove(0);
        }
    }

    /// The line before.
    pub(super) fn older(&mut self, typed: &str) -> Option<String> {
        if self.back >= self.lines.len() {
            return None;
        }
        if self.back == 0 {
            self.draft = typed.to_owned();
        }
        self.back += 1;
        self.lines.get(self.lines.len() - self.back).cloned()
    }

    /// The line after; in the end what was being typed.
    pub(super) fn newer(&mut self) -> Option<String> {
        self.back = self.back.checked_sub(1)?;
        match self.back {
            0 => Some(std::mem::take(&mut self.draft)),
            back => self.lines.get(self.lines.len() - back).cloned(),
        }
    }
}

/// Whether a line is not to be written down: it begins with a space, or looks like it holds a secret.
fn is_private(line: &str) -> bool {
    let lower = line.to_lowercase();
    let assigned = ["password", "passwd", "secret", "token", "api_key", "apikey", "api-key"];
    let tells = |name: &&str| {
        lower.match_indices(*name).any(|(at, name)| {
            let rest = lower[at + name.len()..].trim_start();
            rest.starts_with(['=', ':']) || rest.starts_with("is ")
        })
    };
    let shaped = ["sk-", "ghp_", "gho_", "github_pat_", "xoxb-", "akia", "-----begin"];
    let mut words = lower.split(|c: char| c.is_whitespace() || "\"'`=:(),".contains(c));
    let secret = |word: &str| shaped.iter().any(|form| word.starts_with(form));
    line.starts_with(' ')
        || assigned.iter().any(tells)
        || lower.contains("bearer ")
        || words.any(secret)
}

#[cfg(test)]
mod tests;
