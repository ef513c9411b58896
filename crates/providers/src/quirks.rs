//! How a vendor differs from its family of APIs.

/// How a vendor differs from its family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// Whether the limit on an answer's length is called `max_completion_tokens`.
    pub max_completion_tokens: bool,
    /// Whether `stream_options` is understood, which asks for token counts.
    pub stream_options: bool,
    /// How effort is asked for.
    pub effort: EffortStyle,
    /// Whether a model wants its thoughts back in `reasoning_content`.
    pub thoughts_back: bool,
    /// Whether ids of calls must be nine letters and digits.
    pub short_ids: bool,
    /// Headers that it wants besides.
    pub headers: Vec<(String, String)>,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            max_completion_tokens: false,
            stream_options: true,
            effort: EffortStyle::Word,
            thoughts_back: false,
            short_ids: false,
            headers: Vec::new(),
        }
    }
}

/// How a vendor of chat completions is asked for effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffortStyle {
    /// Not at all.
    None,
    /// `reasoning_effort: "high"`.
    Word,
    /// `reasoning: {effort: "high"}`.
    Object,
    /// `thinking: {type: "enabled"}`.
    Switch,
}

impl EffortStyle {
    /// Reads the word for it.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "word" => Some(Self::Word),
            "object" => Some(Self::Object),
            "switch" => Some(Self::Switch),
            _ => None,
        }
    }
}
