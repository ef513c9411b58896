//! The history of the input line.

/// Maximum number of entries.
pub(crate) const HISTORY_LIMIT: usize = 1000;

/// The input history and the position in it.
#[derive(Debug, Default)]
pub(crate) struct InputHistory {
    lines: Vec<String>,
    /// How many entries back the user is, and the input before that.
    reconnected: usize,
    draft: String,
    /// Entries that are not stored yet.
    unsaved: Vec<String>,
}

impl InputHistory {
    pub(crate) fn new(lines: Vec<String>) -> Self {
        Self { lines, ..Self::default() }
    }

    /// Takes the entries that must be stored.
    pub(crate) fn take_unsaved(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unsaved)
    }

    /// Adds a line; it is stored unless it is private.
    pub(super) fn remember(&mut self, line: &str) {
        self.reconnected = 0;
        self.draft.clear();
        let text = line.trim().to_owned();
        if self.lines.last() == Some(&text) {
            return;
        }
        if !is_private(line) {
            self.unsaved.push(text.clone());
        }
        self.lines.push(text);
        if self.lines.len() > HISTORY_LIMIT {
            self.lines.remove(0);
        }
    }

    /// The previous line.
    pub(super) fn older(&mut self, typed: &str) -> Option<String> {
        if self.reconnected >= self.lines.len() {
            return None;
        }
        if self.reconnected == 0 {
            self.draft = typed.to_owned();
        }
        self.reconnected += 1;
        self.lines.get(self.lines.len() - self.reconnected).cloned()
    }

    /// The next line; at the end the input that was being typed.
    pub(super) fn newer(&mut self) -> Option<String> {
        self.reconnected = self.reconnected.checked_sub(1)?;
        match self.reconnected {
            0 => Some(std::mem::take(&mut self.draft)),
            reconnected => self.lines.get(self.lines.len() - reconnected).cloned(),
        }
    }
}

/// True if a line must not be stored: it begins with a space, or looks like it contains a secret.
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
