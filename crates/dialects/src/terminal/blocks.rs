//! Finds the blocks of a Markdown text while it is being written.
//!
//! Whatever pieces the text comes in, the blocks are the same. Every byte is given out once, as soon as
//! it is known whether it belongs to a fenced block or to the prose around it.

mod fence;
mod meta;

use fence::Fence;
pub(super) use meta::{Kind, Meta, is_diff};

/// A block of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: Kind,
    pub(super) language: Option<String>,
    pub(super) content: String,
    pub(super) meta: Meta,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlockEvent {
    /// Text that goes on; `fenced` if it belongs to a block that will come whole.
    Text { text: String, fenced: bool },
    /// A block is complete.
    Block(Block),
}

/// Finds blocks.
#[derive(Debug, Default)]
pub(super) struct BlockParser {
    /// The line that is being written, and how much of it was given out.
    line: String,
    given: usize,
    prose: String,
    fence: Option<Fence>,
}

impl BlockParser {
    /// Takes more of the text.
    pub(super) fn push(&mut self, text: &str) -> Vec<BlockEvent> {
        let mut found = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                self.end_line(&mut found)
            } else {
                self.part_of_line(&mut found)
            }
        }
        found
    }

    /// The text is over; what is open is closed.
    pub(super) fn finish(&mut self) -> Vec<BlockEvent> {
        let mut found = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut found);
        }
        if let Some(fence) = self.fence.take() {
            found.push(BlockEvent::Block(fence.block()));
        }
        self.end_prose(&mut found);
        found
    }

    fn part_of_line(&mut self, found: &mut Vec<BlockEvent>) {
        let fenced = self.fence.is_some();
        // What may still become the beginning of a fence is held back.
        if fenced || !fence::may_open(&self.line) {
            self.give(fenced, found);
        }
    }

    fn end_line(&mut self, found: &mut Vec<BlockEvent>) {
        match &mut self.fence {
            Some(fence) => {
                let closed = fence.take(&self.line);
                self.give(true, found);
                if closed && let Some(fence) = self.fence.take() {
                    found.push(BlockEvent::Block(fence.block()));
                }
            }
            None => match Fence::open(&self.line) {
                Some(fence) => {
                    self.end_prose(found);
                    self.give(true, found);
                    self.fence = Some(fence);
                }
                None => {
                    self.prose.push_str(&self.line);
                    self.give(false, found);
                }
            },
        }
        self.line.clear();
        self.given = 0;
    }

    fn end_prose(&mut self, found: &mut Vec<BlockEvent>) {
        let prose = std::mem::take(&mut self.prose);
        let content = prose.trim_matches('\n').trim_end();
        if !content.trim().is_empty() {
            let (kind, meta, content) = (Kind::Text, Meta::default(), content.to_owned());
            found.push(BlockEvent::Block(Block { kind, language: None, content, meta }));
        }
    }

    /// Returns out what of the line was not.
    fn give(&mut self, inside: bool, found: &mut Vec<BlockEvent>) {
        let more = &self.line[self.given..];
        match found.last_mut() {
            _ if more.is_empty() => return,
            Some(BlockEvent::Text { text, fenced }) if *fenced == inside => text.push_str(more),
            _ => found.push(BlockEvent::Text { text: more.to_owned(), fenced: inside }),
        }
        self.given = self.line.len();
    }
}

/// The blocks of a whole text.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut parser = BlockParser::default();
    let mut found = parser.push(text);
    found.extend(parser.finish());
    let block = |found| match found {
        BlockEvent::Block(block) => Some(block),
        BlockEvent::Text { .. } => None,
    };
    found.into_iter().filter_map(block).collect()
}

#[cfg(test)]
mod tests;
