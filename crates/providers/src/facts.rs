//! What is known of a model that a request depends on.

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Effort, ModelRef, Profile, PromptMessage, Said};

/// What is known of a model that a request depends on.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) profile: Profile,
    pub(crate) thinking: Thinking,
    /// The most tokens it writes at once, where known.
    pub(crate) max_output: Option<u64>,
    /// The words for effort that it knows; empty if nobody said.
    pub(crate) efforts: Vec<Effort>,
}

/// How a model is told to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// The model does not think.
    Never,
    /// Not known whether and how the model thinks.
    #[default]
    Unknown,
    /// By a word.
    Effort,
    /// By a number of tokens.
    Budget,
    /// The model decides by itself, and takes a word for how much.
    Adaptive,
}

impl Thinking {
    /// Reads the word of the catalogue.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "never" => Some(Self::Never),
            "effort" => Some(Self::Effort),
            "budget" => Some(Self::Budget),
            "adaptive" => Some(Self::Adaptive),
            _ => None,
        }
    }
}

impl Facts {
    /// For a model of which nothing is known but what it takes.
    pub(crate) fn unknown(profile: Profile) -> Self {
        Self { profile, thinking: Thinking::Unknown, max_output: None, efforts: Vec::new() }
    }

    /// The effort that the model knows and that is nearest to the one asked for.
    pub(crate) fn effort(&self, asked: Option<Effort>) -> Option<Effort> {
        let asked = asked.filter(|_| self.thinking != Thinking::Never)?;
        if self.efforts.is_empty() {
            return Some(asked);
        }
        let distance = |effort: &&Effort| (**effort as u8).abs_diff(asked as u8);
        self.efforts.iter().min_by_key(distance).copied()
    }
}

/// How many tokens of thought stand for an effort.
pub(crate) fn budget(effort: Effort) -> u64 {
    match effort {
        Effort::None => 0,
        Effort::Minimal => 1_024,
        Effort::Low => 4_096,
        Effort::Medium => 10_240,
        Effort::High => 24_576,
        Effort::XHigh => 32_768,
    }
}

/// What a model may see of an earlier message: its own thoughts, and nobody else's.
pub(crate) fn visible<'a>(
    model: &'a ModelRef,
    by: Option<&'a ModelRef>,
    parts: &'a [Said],
) -> impl Iterator<Item = &'a Said> {
    let own = by == Some(model);
    parts.iter().filter(move |part| match part {
        Said::Text(text) => !text.is_empty(),
        Said::Thought(_) | Said::Sealed(_) => own,
        Said::Call(_) => true,
    })
}

/// Whether the last thing said is a tool's result, so that the model is in the middle of something.
pub(crate) fn in_tool_loop(messages: &[Arc<PromptMessage>]) -> bool {
    messages.last().is_some_and(|last| matches!(**last, PromptMessage::Result { .. }))
}

/// Every kind of media, for a model of which nothing is known: it may still refuse.
pub(crate) fn all_media() -> Vec<MediaKind> {
    vec![MediaKind::Image, MediaKind::Audio, MediaKind::File]
}

#[cfg(test)]
mod tests {
    use quintet_kernel::model::Searches;

    use super::*;

    #[test]
    fn the_nearest_effort_is_taken() {
        let profile = Profile {
            inputs: all_media(),
            tools: true,
            context_window: None,
            search: Searches::Never,
        };
        let mut facts = Facts::unknown(profile);
        assert_eq!(facts.effort(Some(Effort::XHigh)), Some(Effort::XHigh));
        facts.efforts = vec![Effort::Low, Effort::Medium, Effort::High];
        assert_eq!(facts.effort(Some(Effort::XHigh)), Some(Effort::High));
        assert_eq!(facts.effort(Some(Effort::None)), Some(Effort::Low));
        assert_eq!(facts.effort(None), None);
        facts.thinking = Thinking::Never;
        assert_eq!(facts.effort(Some(Effort::Low)), None);
    }
}
