//! The transcript: messages, blocks and calls, in order.

use crate::notice::{Block, CallEnded, Kind};

/// The entries of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    entries: Vec<Entry>,
    revisions: u64,
}

/// One entry. Its revision changes with its content.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: EntryKind,
    pub(crate) revision: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A message of the user.
    UserText(String),
    /// Text of the model; open until its block is complete.
    AnswerText {
        text: String,
        open: bool,
    },
    /// A fenced block that is still being streamed, including its fence.
    OpenBlock(String),
    Block(Block),
    Tool(Tool),
    Note(String),
    Error(String),
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tool {
    pub(crate) execution: String,
    pub(crate) name: String,
    pub(crate) message: String,
    /// The final status, once the call has ended.
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

    pub(super) fn add_user_text(&mut self, text: String) {
        self.push(EntryKind::UserText(text));
    }

    pub(super) fn add_note(&mut self, text: impl Into<String>) {
        self.push(EntryKind::Note(text.into()));
    }

    pub(super) fn add_error(&mut self, text: impl Into<String>) {
        self.push(EntryKind::Error(text.into()));
    }

    /// Adds a complete earlier answer.
    pub(super) fn answered(&mut self, text: String) {
        self.push(EntryKind::AnswerText { text, open: false });
    }

    /// Appends a token to the answer.
    pub(super) fn token(&mut self, token: &str, fenced: bool) {
        match self.entries.last_mut().map(|entry| &mut entry.kind) {
            Some(EntryKind::OpenBlock(text)) if fenced => text.push_str(token),
            Some(EntryKind::AnswerText { text, open: true }) if !fenced => text.push_str(token),
            _ if fenced => return self.push(EntryKind::OpenBlock(token.to_owned())),
            // The view separates blocks, so blank lines between them are dropped.
            _ if token.trim().is_empty() => return,
            _ => {
                let text = token.trim_start_matches('\n').to_owned();
                return self.push(EntryKind::AnswerText { text, open: true });
            }
        }
        self.touch_last();
    }

    /// Adds a complete block. Most blocks were already shown while they were streamed.
    pub(super) fn block(&mut self, block: Block) {
        match block.kind {
            Kind::Text => self.prose(block),
            Kind::Code | Kind::Diff => self.fenced(block),
            // The approval request shows it.
            Kind::Interactive if block.execution.is_some() => {}
            Kind::Error | Kind::ToolOutput if self.has_output_of(&block) => {}
            Kind::Error | Kind::ToolOutput | Kind::Interactive => self.fenced(block),
        }
    }

    /// True if a call's output is already shown: it is sent again after a reconnect.
    fn has_output_of(&self, block: &Block) -> bool {
        let same = |entry: &Entry| matches!(&entry.kind, EntryKind::Block(known) if known.execution == block.execution);
        let again = block.execution.is_some() && self.entries.iter().any(same);
        again || block.content.trim().is_empty()
    }

    fn prose(&mut self, block: Block) {
        let wanted = block.content.trim();
        match self.entries.last_mut().map(|entry| &mut entry.kind) {
            Some(EntryKind::AnswerText { text, open }) if *open && text.contains(wanted) => {
                *open = false
            }
            _ => self.answered(block.content),
        }
    }

    fn fenced(&mut self, block: Block) {
        match self.entries.last_mut().map(|entry| &mut entry.kind) {
            Some(EntryKind::OpenBlock(_)) if block.execution.is_none() => {
                self.entries.pop();
                self.push(EntryKind::Block(block));
            }
            // A server that does not distinguish code from prose has already sent it as prose.
            Some(EntryKind::AnswerText { text, .. })
                if text.contains("```") && text.contains(block.content.trim_end()) => {}
            _ => self.push(EntryKind::Block(block)),
        }
    }

    /// Updates the progress of a call.
    pub(super) fn working(&mut self, execution: &str, message: &str) {
        let tool = self.tool(execution);
        tool.message = message.to_owned();
    }

    /// Ends a call.
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

    /// True if the last entry is this error.
    pub(super) fn ends_in_error(&self, message: &str) -> bool {
        match self.entries.last().map(|entry| &entry.kind) {
            Some(EntryKind::Block(block)) => {
                block.kind == Kind::Error && message.contains(block.content.trim())
            }
            Some(EntryKind::Error(text)) => text == message,
            _ => false,
        }
    }

    /// Closes entries that are still open.
    pub(super) fn seal(&mut self) {
        if let Some(Entry { kind: EntryKind::AnswerText { open, .. }, .. }) =
            self.entries.last_mut()
        {
            *open = false;
        }
    }

    fn tool(&mut self, execution: &str) -> &mut Tool {
        let known = |entry: &Entry| matches!(&entry.kind, EntryKind::Tool(tool) if tool.execution == execution);
        let place = self.entries.iter().rposition(known).unwrap_or_else(|| {
            let execution = execution.to_owned();
            self.push(EntryKind::Tool(Tool { execution, ..Tool::default() }));
            self.entries.len() - 1
        });
        self.revisions += 1;
        let entry = &mut self.entries[place];
        entry.revision = self.revisions;
        match &mut entry.kind {
            EntryKind::Tool(tool) => tool,
            _ => unreachable!("the index is that of a tool"),
        }
    }

    fn push(&mut self, kind: EntryKind) {
        self.revisions += 1;
        self.entries.push(Entry { kind, revision: self.revisions });
    }

    fn touch_last(&mut self) {
        self.revisions += 1;
        if let Some(entry) = self.entries.last_mut() {
            entry.revision = self.revisions;
        }
    }
}
