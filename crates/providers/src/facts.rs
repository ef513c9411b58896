//! The properties of a model that a request depends on.

use std::sync::Arc;

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{AssistantPart, Effort, ModelRef, Profile, PromptMessage};

/// The properties of a model that a request depends on.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) profile: Profile,
    pub(crate) thinking: Thinking,
    /// Maximum tokens of one answer, if known.
    pub(crate) max_output: Option<u64>,
    /// The efforts that the model supports; empty if not known.
    pub(crate) efforts: Vec<Effort>,
}

/// How thinking is requested of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// The model does not think.
    Never,
    /// Unknown whether and how the model thinks.
    #[default]
    Unknown,
    /// By an effort name.
    Effort,
    /// By a number of tokens.
    Budget,
    /// The model decides itself; an effort name sets how much.
    Adaptive,
}

impl Thinking {
    /// The style of that name in the catalogue.
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
    /// A model with only a known profile.
    pub(crate) fn unknown(profile: Profile) -> Self {
        Self { profile, thinking: Thinking::Unknown, max_output: None, efforts: Vec::new() }
    }

    /// The supported effort that is nearest to the requested one.
    pub(crate) fn effort(&self, asked: Option<Effort>) -> Option<Effort> {
        let asked = asked.filter(|_| self.thinking != Thinking::Never)?;
        if self.efforts.is_empty() {
            return Some(asked);
        }
        let distance = |effort: &&Effort| (**effort as u8).abs_diff(asked as u8);
        self.efforts.iter().min_by_key(distance).copied()
    }
}

/// The thinking budget of an effort, in tokens.
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

/// The parts of an earlier message that a model may see: its own thoughts, but not those of another
/// model.
pub(crate) fn visible<'a>(
    model: &'a ModelRef,
    by: Option<&'a ModelRef>,
    parts: &'a [AssistantPart],
) -> impl Iterator<Item = &'a AssistantPart> + Clone {
    let own = by == Some(model);
    parts.iter().filter(move |part| match part {
        AssistantPart::Text(text) => !text.is_empty(),
        AssistantPart::Thought(_) | AssistantPart::Sealed(_) => own,
        AssistantPart::Call(_) => true,
    })
}

/// True if the last message is a tool's result, so that the model continues a turn.
pub(crate) fn in_tool_loop(messages: &[Arc<PromptMessage>]) -> bool {
    messages.last().is_some_and(|last| matches!(**last, PromptMessage::Result { .. }))
}

/// Every kind of media, for a model without known capabilities; the provider may still reject some.
pub(crate) fn all_media() -> Vec<MediaKind> {
    vec![MediaKind::Image, MediaKind::Audio, MediaKind::File]
}

#[cfg(test)]
mod tests {
    use quintet_kernel::model::SearchSupport;

    use super::*;

    #[test]
    fn the_nearest_effort_is_used() {
        let profile = Profile {
            inputs: all_media(),
            tools: true,
            context_window: None,
            search: SearchSupport::Never,
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
