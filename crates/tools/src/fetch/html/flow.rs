//! Words that flow, and the space between them.

use std::mem::take;

/// The gap before the next word; the widest requested one is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Gap {
    #[default]
    Nothing,
    Space,
    Line,
    Paragraph,
}

/// Flowing text, independent of the layout of the source.
#[derive(Debug, Default)]
pub(super) struct Flow {
    out: String,
    gap: Gap,
    /// True in code, where spaces and line ends are kept.
    code: bool,
}

impl Flow {
    pub(super) fn len(&self) -> usize {
        self.out.len()
    }

    /// Asks for space before what comes next.
    pub(super) fn gap(&mut self, gap: Gap) {
        if !self.code {
            self.gap = self.gap.max(gap);
        }
    }

    /// Adds text.
    pub(super) fn text(&mut self, text: &str) {
        if self.code {
            self.out.push_str(text);
            return;
        }
        if text.starts_with(char::is_whitespace) {
            self.gap(Gap::Space);
        }
        for word in text.split_whitespace() {
            self.fill();
            self.out.push_str(word);
            self.gap = Gap::Space;
        }
        if !text.is_empty() && !text.ends_with(char::is_whitespace) {
            self.gap = Gap::Nothing;
        }
    }

    /// Adds a mark; the text continues directly after it.
    pub(super) fn mark(&mut self, mark: &str) {
        self.fill();
        self.out.push_str(mark);
    }

    pub(super) fn open_code(&mut self) {
        if !self.code {
            self.gap(Gap::Paragraph);
            self.mark("```\n");
            self.code = true;
        }
    }

    pub(super) fn close_code(&mut self) {
        if take(&mut self.code) {
            let end = if self.out.ends_with('\n') { "```" } else { "\n```" };
            self.out.push_str(end);
        }
    }

    /// Makes what was added since `start` a link.
    pub(super) fn link(&mut self, start: usize, target: &str) {
        let added = self.out.get(start..).unwrap_or_default();
        let text = added.trim_start();
        if self.code || text.is_empty() {
            return;
        }
        self.out.insert(self.out.len() - text.len(), '[');
        self.out.push_str(&format!("]({target})"));
    }

    /// All of it.
    pub(super) fn finish(mut self) -> String {
        self.close_code();
        self.out.truncate(self.out.trim_end().len());
        self.out
    }

    fn fill(&mut self) {
        let out = &mut self.out;
        // A mark at the start of a line, such as that of a list, is directly followed by its text.
        let after_mark = out.is_empty() || out.ends_with("- ") || out.ends_with("# ");
        match take(&mut self.gap) {
            Gap::Space if !out.ends_with(' ') && !after_mark => out.push(' '),
            Gap::Line if !after_mark => out.push('\n'),
            Gap::Paragraph if !after_mark => out.push_str("\n\n"),
            Gap::Nothing | Gap::Space | Gap::Line | Gap::Paragraph => (),
        }
    }
}
