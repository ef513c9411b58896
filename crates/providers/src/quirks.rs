//! How a vendor differs from its family of APIs.

/// Differences of a vendor from its API family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// True if the limit on an answer's length is called `max_completion_tokens`.
    pub max_completion_tokens: bool,
    /// True if `stream_options` is supported, which requests token counts.
    pub stream_options: bool,
    /// How effort is requested.
    pub effort: EffortStyle,
    /// True if a model's thoughts are sent back in `reasoning_content`.
    pub thoughts_back: bool,
    /// True if ids of calls must be nine letters and digits.
    pub short_ids: bool,
    /// Additional headers.
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

/// How effort is requested of a vendor of chat completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffortStyle {
    /// Not supported.
    None,
    /// `reasoning_effort: "high"`.
    Word,
    /// `reasoning: {effort: "high"}`.
    Object,
    /// `thinking: {type: "enabled"}`.
    Switch,
}

impl EffortStyle {
    /// The style of that name in `data/vendors.toml`.
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
