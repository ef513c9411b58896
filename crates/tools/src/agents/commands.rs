//! The verification commands in an `AGENTS.md`.
//!
//! Commands are listed below a heading `Verify` or `Verification`, after a line `Verify:`, or in a fenced
//! block marked `verify`. A list item is a command if it is code, alone or after a
//! label, or plain text that begins like a command; prose is never run.

use std::iter::Peekable;
use std::str::Lines;

mod item;

use item::command_of;

/// The most commands that are taken.
const COMMANDS_LIMIT: usize = 20;
/// The most lines of a fenced block that are searched for its end.
const BLOCK_LIMIT: usize = 500;
/// The languages of fenced blocks whose lines are commands, below a matching heading or line.
const SHELLS: [&str; 8] = ["", "sh", "bash", "shell", "zsh", "console", "shell-session", "verify"];

/// The commands that a text names, in its order.
pub(crate) fn verify_commands(text: &str) -> Vec<String> {
    let mut reader =
        Reader { lines: text.lines().peekable(), place: Place::Elsewhere, found: vec![] };
    while let Some(line) = reader.lines.next() {
        reader.read(line);
    }
    let mut commands: Vec<String> = Vec::new();
    for command in reader.found {
        if !commands.contains(&command) && commands.len() < COMMANDS_LIMIT {
            commands.push(command);
        }
    }
    commands
}

/// Where a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Elsewhere,
    /// Below a matching heading of this level.
    Section(usize),
    /// In the first block after a matching line.
    Block,
}

struct Reader<'a> {
    lines: Peekable<Lines<'a>>,
    place: Place,
    found: Vec<String>,
}

impl Reader<'_> {
    fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some(fence) = fence(line) {
            self.block(fence);
        } else if let Some((level, title)) = heading(line) {
            self.heading(level, title);
        } else if let Some(rest) = said(strip_bullet(line).unwrap_or(line)) {
            self.line(rest);
        } else if let Some(item) = strip_bullet(line) {
            if self.place != Place::Elsewhere {
                self.found.extend(command_of(item));
            }
        } else if self.place == Place::Block && !line.is_empty() {
            // Other text ends the block.
            self.place = Place::Elsewhere;
        }
    }

    fn heading(&mut self, level: usize, title: &str) {
        let ends = match self.place {
            Place::Section(of) => level <= of,
            Place::Block | Place::Elsewhere => true,
        };
        if is_verify(title) {
            self.place = Place::Section(level);
        } else if ends {
            self.place = Place::Elsewhere;
        }
    }

    /// `Verify:` and what comes after it in the line.
    fn line(&mut self, rest: &str) {
        if rest.is_empty() {
            if self.place == Place::Elsewhere {
                self.place = Place::Block;
            }
        } else {
            self.found.extend(command_of(rest));
        }
    }

    /// Reads a fenced block to its end.
    fn block(&mut self, fence: Fence<'_>) {
        let lines = self.rest(fence.mark);
        let word = fence.info.split_whitespace().next().unwrap_or_default().to_lowercase();
        let is_meant = self.place != Place::Elsewhere && SHELLS.contains(&word.as_str());
        if is_meant || word == "verify" {
            self.found.extend(commands_in(&lines));
        }
        if self.place == Place::Block {
            self.place = Place::Elsewhere;
        }
    }

    /// The lines of a block. A block that is never closed ends at the first empty line, so that the
    /// text after it is not taken for commands.
    fn rest(&mut self, mark: &str) -> Vec<String> {
        let closes = |line: &str| {
            let line = line.trim();
            line.len() >= mark.len() && line.trim_start_matches(&mark[..1]).is_empty()
        };
        let is_closed = self.lines.clone().take(BLOCK_LIMIT).any(closes);
        let mut lines = Vec::new();
        for line in self.lines.by_ref() {
            if if is_closed { closes(line) } else { line.trim().is_empty() } {
                break;
            }
            lines.push(line.to_owned());
        }
        lines
    }
}

/// The commands in a block: the lines after prompts if there are any, because the others are output then;
/// otherwise all but comments. A backslash at the end of a line continues it.
fn commands_in(lines: &[String]) -> Vec<String> {
    let lines = joined(lines);
    let prompted: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("$ ")).collect();
    let lines =
        if prompted.is_empty() { lines.iter().map(String::as_str).collect() } else { prompted };
    let lines = lines.into_iter().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned).collect()
}

/// Whole lines, of which some were written as several.
fn joined(lines: &[String]) -> Vec<String> {
    let mut whole: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in lines.iter().map(|line| line.trim()) {
        let piece = line.strip_suffix('\\').unwrap_or(line).trim_end();
        match whole.last_mut().filter(|_| goes_on) {
            Some(last) => *last += &format!(" {piece}"),
            None => whole.push(piece.to_owned()),
        }
        goes_on = line.ends_with('\\');
    }
    whole
}

struct Fence<'a> {
    mark: &'a str,
    info: &'a str,
}

fn fence(line: &str) -> Option<Fence<'_>> {
    let line = strip_bullet(line).unwrap_or(line);
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let info = line.trim_start_matches(sign);
    let mark = &line[..line.len() - info.len()];
    (mark.len() >= 3 && !info.contains('`')).then_some(Fence { mark, info: info.trim() })
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    let is_heading = (1..=6).contains(&level) && title.starts_with([' ', '\t']);
    is_heading.then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

/// The text after `Verify:`.
fn said(line: &str) -> Option<&str> {
    let (word, rest) = line.split_once(':')?;
    is_verify(word).then(|| rest.trim_start_matches(['*', '_']).trim())
}

fn is_verify(title: &str) -> bool {
    let word = title.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | ':'));
    word.eq_ignore_ascii_case("verify") || word.eq_ignore_ascii_case("verification")
}

/// The text of a list's item.
fn strip_bullet(line: &str) -> Option<&str> {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let bullets = ["- ", "* ", "+ "];
    let numbers = [". ", ") "].iter().filter(|_| digits.len() < line.len());
    let item = bullets.iter().find_map(|bullet| line.strip_prefix(bullet));
    let item = item.or_else(|| numbers.into_iter().find_map(|end| digits.strip_prefix(end)))?;
    let item = item.trim();
    let boxes = ["[ ] ", "[x] ", "[X] "];
    Some(boxes.iter().find_map(|tick| item.strip_prefix(tick)).unwrap_or(item).trim())
}

#[cfg(test)]
mod tests;
