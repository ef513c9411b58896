//! Finds the blocks of a Markdown text while it is being written.
//!
//! The blocks do not depend on the pieces in which the text arrives. Every byte is returned once, as soon
//! as it is known whether it belongs to a fenced block or to the prose around it.

mod fence;
mod meta;

use fence::Fence;
pub(super) use meta::{BlockKind, BlockMeta, is_diff};

/// A block of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    pub(super) language: Option<String>,
    pub(super) content: String,
    pub(super) meta: BlockMeta,
}

/// A result of parsing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlockEvent {
    /// A piece of text; `fenced` is true if it belongs to a block that follows when it is complete.
    Text { text: String, fenced: bool },
    /// A block is complete.
    Block(Block),
}

/// Finds blocks in a text that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct BlockParser {
    /// The current line.
    line: String,
    /// Bytes of the line that were returned.
    returned: usize,
    prose: String,
    fence: Option<Fence>,
}

impl BlockParser {
    /// Parses more of the text.
    pub(super) fn push(&mut self, text: &str) -> Vec<BlockEvent> {
        let mut events = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') {
                self.end_line(&mut events)
            } else {
                self.end_piece(&mut events)
            }
        }
        events
    }

    /// Ends the text and closes the open block.
    pub(super) fn finish(&mut self) -> Vec<BlockEvent> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events);
        }
        if let Some(fence) = self.fence.take() {
            events.push(BlockEvent::Block(fence.block()));
        }
        self.end_prose(&mut events);
        events
    }

    fn end_piece(&mut self, events: &mut Vec<BlockEvent>) {
        let fenced = self.fence.is_some();
        // A line that may still become a fence is held back.
        if fenced || !fence::may_open(&self.line) {
            self.emit(fenced, events);
        }
    }

    fn end_line(&mut self, events: &mut Vec<BlockEvent>) {
        match &mut self.fence {
            Some(fence) => {
                let closed = fence.add_line(&self.line);
                self.emit(true, events);
                if closed && let Some(fence) = self.fence.take() {
                    events.push(BlockEvent::Block(fence.block()));
                }
            }
            None => match Fence::open(&self.line) {
                Some(fence) => {
                    self.end_prose(events);
                    self.emit(true, events);
                    self.fence = Some(fence);
                }
                None => {
                    self.prose.push_str(&self.line);
                    self.emit(false, events);
                }
            },
        }
        self.line.clear();
        self.returned = 0;
    }

    fn end_prose(&mut self, events: &mut Vec<BlockEvent>) {
        let prose = std::mem::take(&mut self.prose);
        let content = prose.trim_matches('\n').trim_end();
        if !content.trim().is_empty() {
            let (kind, meta, content) = (BlockKind::Text, BlockMeta::default(), content.to_owned());
            events.push(BlockEvent::Block(Block { kind, language: None, content, meta }));
        }
    }

    /// Returns the rest of the line.
    fn emit(&mut self, inside: bool, events: &mut Vec<BlockEvent>) {
        let more = &self.line[self.returned..];
        match events.last_mut() {
            _ if more.is_empty() => return,
            Some(BlockEvent::Text { text, fenced }) if *fenced == inside => text.push_str(more),
            _ => events.push(BlockEvent::Text { text: more.to_owned(), fenced: inside }),
        }
        self.returned = self.line.len();
    }
}

/// The blocks of a complete text.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut parser = BlockParser::default();
    let mut events = parser.push(text);
    events.extend(parser.finish());
    let block = |event| match event {
        BlockEvent::Block(block) => Some(block),
        BlockEvent::Text { .. } => None,
    };
    events.into_iter().filter_map(block).collect()
}

#[cfg(test)]
mod tests;
