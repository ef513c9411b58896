//! Parses fenced blocks: their start, content and end.

use super::{Block, meta};

/// A fenced block that is being written.
#[derive(Debug)]
pub(super) struct Fence {
    fence_char: char,
    length: usize,
    indent: usize,
    info: String,
    content: String,
}

/// True if a line that starts like this may become a fence.
pub(super) fn may_open(line: &str) -> bool {
    let line = line.trim_start();
    let Some(fence_char) = line.chars().next() else { return true };
    let marks = line.chars().take_while(|c| *c == fence_char).count();
    matches!(fence_char, '`' | '~') && (marks >= 3 || marks == line.len())
}

impl Fence {
    /// The block that a line opens, if any.
    pub(super) fn open(line: &str) -> Option<Self> {
        let text = line.trim_start();
        let fence_char =
            text.chars().next().filter(|fence_char| matches!(fence_char, '`' | '~'))?;
        let length = text.chars().take_while(|c| *c == fence_char).count();
        let info = text[length..].trim();
        // Otherwise it is inline code.
        let opens = length >= 3 && !(fence_char == '`' && info.contains('`'));
        let indent = line.len() - text.len();
        let (info, content) = (info.to_owned(), String::new());
        opens.then_some(Self { fence_char, length, indent, info, content })
    }

    /// Adds a line; true if it closes the block.
    pub(super) fn add_line(&mut self, line: &str) -> bool {
        let text = line.trim();
        let closes = text.len() >= self.length && text.chars().all(|c| c == self.fence_char);
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
