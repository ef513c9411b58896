//! What was said and done, in order.

use crate::notice::{Block, CallEnded, Kind};

/// What was said and done.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: Vec<Entry>,
    revisions: u64,
}

/// One thing that was said or done. Its revision changes with it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) piece: Piece,
    pub(crate) revision: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// By the person.
    Said(String),
    /// By the model. Open while its block has not come.
    Prose {
        text: String,
        open: bool,
    },
    /// A fenced block that is still being written, fence and all.
    Draft(String),
    Block(Block),
    Tool(Tool),
    Note(String),
    Trouble(String),
}

/// A call as it goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) execution: String,
    pub(crate) name: String,
    pub(crate) message: String,
    /// How it ended, once it has.
    pub(crate) status: Option<String>,
}

impl Transcript {
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(super) fn say(&mut self, text: String) {
        self.push(Piece::Said(text));
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.push(Piece::Note(text.into()));
    }

    pub(super) fn trouble(&mut self, text: impl Into<String>) {
        self.push(Piece::Trouble(text.into()));
    }

    /// A whole answer from before.
    pub(super) fn answered(&mut self, text: String) {
        self.push(Piece::Prose { text, open: false });
    }

    /// The answer goes on.
    pub(super) fn token(&mut self, token: &str, fenced: bool) {
        match self.entries.last_mut().map(|entry| &mut entry.piece) {
            Some(Piece::Draft(text)) if fenced => text.push_str(token),
            Some(Piece::Prose { text, open: true }) if !fenced => text.push_str(token),
            _ if fenced => return self.push(Piece::Draft(token.to_owned())),
            // Blank lines between blocks are the screen's business.
            _ if token.trim().is_empty() => return,
            _ => {
                let text = token.trim_start_matches('\n').to_owned();
                return self.push(Piece::Prose { text, open: true });
            }
        }
        self.touch_last();
    }

    /// A block is whole. Most were seen while they were written.
    pub(super) fn block(&mut self, block: Block) {
        match block.kind {
            Kind::Text => self.prose(block),
            Kind::Code | Kind::Diff => self.fenced(block),
            // The question itself shows it.
            Kind::Interactive if block.execution.is_some() => {}
            Kind::Error | Kind::ToolOutput if self.has_output_of(&block) => {}
            Kind::Error | Kind::ToolOutput | Kind::Interactive => self.fenced(block),
        }
    }

    /// Whether there is nothing new: what a call printed comes again after a connection broke.
    fn has_output_of(&self, block: &Block) -> bool {
        let same = |entry: &Entry| matches!(&entry.piece, Piece::Block(known) if known.execution == block.execution);
        let again = block.execution.is_some() && self.entries.iter().any(same);
        again || block.content.trim().is_empty()
    }

    fn prose(&mut self, block: Block) {
        let wanted = block.content.trim();
        match self.entries.last_mut().map(|entry| &mut entry.piece) {
            Some(Piece::Prose { text, open }) if *open && text.contains(wanted) => *open = false,
            _ => self.answered(block.content),
        }
    }

    fn fenced(&mut self, block: Block) {
        match self.entries.last_mut().map(|entry| &mut entry.piece) {
            Some(Piece::Draft(_)) if block.execution.is_none() => {
                self.entries.pop();
                self.push(Piece::Block(block));
            }
            // A server that does not tell code from prose sent it as prose already.
            Some(Piece::Prose { text, .. })
                if text.contains("```") && text.contains(block.content.trim_end()) => {}
            _ => self.push(Piece::Block(block)),
        }
    }

    /// A call goes on.
    pub(super) fn working(&mut self, execution: &str, message: &str) {
        let tool = self.tool(execution);
        tool.message = message.to_owned();
    }

    /// A call is over.
    pub(super) fn done(&mut self, done: CallEnded) {
        let tool = self.tool(&done.execution);
        tool.name = done.tool;
        tool.message = match done.error {
            Some(error) => error,
            None if done.files.is_empty() => format!("{} ms", done.millis),
            None => format!("{} ms, changed {}", done.millis, done.files.join(", ")),
        };
        tool.status = Some(done.status);
    }

    /// Whether the same trouble was told last.
    pub(super) fn ends_in_trouble(&self, message: &str) -> bool {
        match self.entries.last().map(|entry| &entry.piece) {
            Some(Piece::Block(block)) => {
                block.kind == Kind::Error && message.contains(block.content.trim())
            }
            Some(Piece::Trouble(text)) => text == message,
            _ => false,
        }
    }

    /// Nothing more comes to what is open.
    pub(super) fn seal(&mut self) {
        if let Some(Entry { piece: Piece::Prose { open, .. }, .. }) = self.entries.last_mut() {
            *open = false;
        }
    }

    fn tool(&mut self, execution: &str) -> &mut Tool {
        let known = |entry: &Entry| matches!(&entry.piece, Piece::Tool(tool) if tool.execution == execution);
        let place = self.entries.iter().rposition(known).unwrap_or_else(|| {
            let execution = execution.to_owned();
            self.push(Piece::Tool(Tool { execution, ..Tool::default() }));
            self.entries.len() - 1
        });
        self.revisions += 1;
        let entry = &mut self.entries[place];
        entry.revision = self.revisions;
        match &mut entry.piece {
            Piece::Tool(tool) => tool,
            _ => unreachable!("the place of a tool was looked for"),
        }
    }

    fn push(&mut self, piece: Piece) {
        self.revisions += 1;
        self.entries.push(Entry { piece, revision: self.revisions });
    }

    fn touch_last(&mut self) {
        self.revisions += 1;
        if let Some(entry) = self.entries.last_mut() {
            entry.revision = self.revisions;
        }
    }
}
