//! A fenced block: where it begins, what is in it and where it ends.

use super::{Block, meta};

/// A fenced block that is being written.
#[derive(Debug)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    info: String,
    content: String,
}

/// True if this beginning of a line may become a fence.
pub(super) fn may_open(line: &str) -> bool {
    let line = line.trim_start();
    let Some(mark) = line.chars().next() else { return true };
    let marks = line.chars().take_while(|c| *c == mark).count();
    matches!(mark, '`' | '~') && (marks >= 3 || marks == line.len())
}

impl Fence {
    /// The block that a line begins, if it does.
    pub(super) fn open(line: &str) -> Option<Self> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = text.chars().take_while(|c| *c == mark).count();
        let info = text[length..].trim();
        // Otherwise it is code within a line.
        let opens = length >= 3 && !(mark == '`' && info.contains('`'));
        let indent = line.len() - text.len();
        let (info, content) = (info.to_owned(), String::new());
        opens.then_some(Self { mark, length, indent, info, content })
    }

    /// Takes a line; returns whether it was the last.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let text = line.trim();
        let closes = text.len() >= self.length && text.chars().all(|c| c == self.mark);
        if !closes {
            let blank = line.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count();
            self.content.push_str(&line[blank.min(self.indent)..]);
        }
        closes
    }

    pub(super) fn block(self) -> Block {
        let mut content = self.content;
        if content.ends_with('\n') {
            content.pop();
        }
        meta::block(&self.info, content)
    }
}
