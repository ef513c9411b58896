//! Hints for a small model after results.

/// The hint after results: what to do with them. Equal results give equal hints, so that earlier
/// tokens need not be evaluated again.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::chat) struct Hints {
    /// The user requested a change.
    pub(in crate::chat) wants_change: bool,
    /// A change was made.
    pub(in crate::chat) changed: bool,
    /// The user requested a repair of code, and files were read for it.
    pub(in crate::chat) repairs_code: bool,
    /// The user asked about the workspace, as far as the words show.
    pub(in crate::chat) asks_workspace: bool,
    /// The last search or read found nothing.
    pub(in crate::chat) missing: bool,
}

/// Maximum length of a repeated question, in characters.
const QUESTION_CHARS_LIMIT: usize = 300;

impl Hints {
    /// The question again: after a long result a small model answers another one.
    pub(in crate::chat) fn question(asked: &str) -> String {
        let question: String = asked.trim().chars().take(QUESTION_CHARS_LIMIT).collect();
        format!("My question: {question}")
    }

    pub(in crate::chat) fn after(self, all_ok: bool) -> &'static str {
        if self.missing && !self.changed && !self.wants_change && !self.asks_workspace {
            return "No file here is about that. Answer in plain words from what you know.";
        }
        if self.missing && !self.changed {
            return "What was looked for is not there. Tell me in one short sentence which file or name is \
                    missing.";
        }
        if self.repairs_code && !self.changed {
            return "Now write the function that has to change, whole and corrected, in one code block. \
                    Imports that are missing go into the block too.";
        }
        match (self.wants_change, self.changed, all_ok) {
            (true, true, false) => "That did not work. Go on with a corrected function call.",
            (true, false, false) => {
                "That does not work yet. Go on with the function call that puts it right."
            }
            (true, false, true) => "Now go on with the function call that does what I asked for.",
            (true, true, true) => {
                "If all that I asked for is done now, answer in one short sentence. If not, go on \
                 with the next function call."
            }
            (false, ..) => {
                "Use this to answer my question in plain words now. Call another function only if \
                 the question cannot be answered without it."
            }
        }
    }
}
