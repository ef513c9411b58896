//! The prompt for reviewing a change before it is made, and parsing of the review.

use crate::event::ApprovalDecision;
use crate::id::CallId;
use crate::model::Prompt;
use crate::session::{CallPhase, State};

use super::{PromptCache, Shorten, conversation, history, side_prompt, user_text};

const ASK_FOR_REVIEW: &str = "Before the change below is made, read it again as a careful colleague \
who did not write it. Does it do what was asked, and nothing that was not? Would it break something, \
lose something or leave a secret behind? Answer with one line: APPROVE or REJECT, a colon, and the \
reason in a sentence.";

/// The prompt for reviewing a call's change; `None` if the call is not to be reviewed.
pub fn review_prompt(state: &State, call: &CallId) -> Option<Prompt> {
    let call = state.open.as_ref()?.call(call)?;
    let CallPhase::InReview { assessment } = &call.phase else { return None };
    let mut cache = PromptCache::default();
    let mut messages = conversation(state, &history(state), Shorten::of(state), &mut cache);
    let tool = &call.request.tool;
    messages.push(user_text(format!("{ASK_FOR_REVIEW}\n\n{tool}:\n{}", assessment.preview)).into());
    Some(side_prompt(state, messages))
}

/// Parses a review: the verdict, if it is clear, and the reason.
pub fn parse_review(words: &str) -> (Option<ApprovalDecision>, String) {
    let verdict = |line: &str| {
        let line = line.trim().trim_start_matches(['*', '#', '>', '`', ' ']);
        let known = [("APPROVE", ApprovalDecision::Allow), ("REJECT", ApprovalDecision::Deny)];
        let (word, answer) = known.into_iter().find(|(word, _)| line.starts_with(word))?;
        let rest = line[word.len()..].trim_start_matches(|c: char| c.is_alphabetic());
        let reason = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        Some((answer, reason.trim().to_owned()))
    };
    match words.lines().find_map(verdict) {
        Some((answer, reason)) if reason.is_empty() => (Some(answer), "no reason given".into()),
        Some((answer, reason)) => (Some(answer), reason),
        None => (None, "the reviewer gave no clear answer".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(words: &str, answer: Option<ApprovalDecision>, reason: &str) {
        assert_eq!(parse_review(words), (answer, reason.into()), "{words:?}");
    }

    #[test]
    fn a_verdict_is_found_in_other_text() {
        check(
            "APPROVE: it is what was asked",
            Some(ApprovalDecision::Allow),
            "it is what was asked",
        );
        check(
            "Let me see.\n**REJECT**: drops the test",
            Some(ApprovalDecision::Deny),
            "drops the test",
        );
        check("REJECT", Some(ApprovalDecision::Deny), "no reason given");
        check("APPROVED - fine", Some(ApprovalDecision::Allow), "fine");
    }

    #[test]
    fn anything_else_is_no_answer() {
        for words in ["", "I would approve", "looks good", "approve: yes"] {
            check(words, None, "the reviewer gave no clear answer");
        }
    }
}
