//! Encodes compactions: those within a turn, and those that the client requested.

use quintet_kernel::Time;
use quintet_kernel::event::Seq;
use quintet_kernel::model::Prompt;
use serde_json::{Value, json};

use super::turn_frames::{Frame, TurnFrames};
use super::{Link, errors, history};
use crate::windie::wire::envelope;

/// The longest preview of a summary, in characters.
const PREVIEW_LIMIT: usize = 180;

impl Link {
    /// Notes that a request of the client led to the compaction that begins with this event.
    pub(crate) fn compacting(&mut self, request: &str, begins: Seq) {
        self.summary = Some((request.into(), begins));
    }

    /// The frame for a requested compaction that is skipped.
    pub(crate) fn not_compacted(&mut self, request: &str, reason: &str, at: Time) -> Frame {
        let payload = json!({
            "reason": "manual",
            "strategy": "auto",
            "removed_messages": 0,
            "skipped_reason": reason,
        });
        self.new_turn(None, request).frame("context-compaction-completed", &payload, at)
    }

    /// Encodes the start of a compaction, perhaps of a requested one.
    pub(super) fn summarizing(&mut self, begins: Seq, tokens: u64, at: Time) -> Vec<Frame> {
        if let Some((request, _)) = self.summary.take_if(|(_, seq)| *seq == begins) {
            let of = self.new_turn(None, &request);
            self.turns.push(of);
        }
        self.tokens_before = tokens;
        let added = self.summarized_turn().map_or(0, |of| of.added);
        let payload = json!({
            "reason": self.why(),
            "strategy": "auto",
            "before_tokens": tokens,
            "projected_tokens": tokens.saturating_add(added),
        });
        self.compaction("context-compaction-started", &payload, at)
    }

    pub(super) fn summarized(
        &mut self,
        summary: &str,
        messages: u64,
        prompt: Option<&Prompt>,
        at: Time,
    ) -> Vec<Frame> {
        let preview: String = summary.chars().take(PREVIEW_LIMIT).collect();
        let mut payload = json!({
            "reason": self.why(),
            "strategy": "auto",
            "before_tokens": self.tokens_before,
            "after_tokens": prompt.map(history::token_estimate),
            "removed_messages": messages,
            "summary_preview": preview,
            "skipped_reason": null,
        });
        if let Some(prompt) = prompt {
            payload["replacement_history_entries"] = history::entries(prompt, true).into();
        }
        let request = self.summarized_turn().filter(|of| of.turn.is_none());
        let request = request.map(|of| of.name().to_owned());
        let mut frames = self.compaction("context-compaction-completed", &payload, at);
        let history = request.zip(prompt);
        frames
            .extend(history.and_then(|(name, prompt)| self.summarized_history(&name, prompt, at)));
        frames
    }

    /// Encodes a failed compaction.
    pub(super) fn not_summarized(&mut self, reason: &str, at: Time) -> Vec<Frame> {
        let payload = json!({
            "reason": self.why(),
            "strategy": "auto",
            "error": errors::sanitized(reason),
        });
        self.compaction("context-compaction-failed", &payload, at)
    }

    /// A frame about a compaction, in the turn or for the request that it belongs to.
    fn compaction(&mut self, kind: &'static str, payload: &Value, at: Time) -> Vec<Frame> {
        let frame = self.summarized_turn().map(|of| of.frame(kind, payload, at));
        if kind != "context-compaction-started" {
            self.turns.retain(|of| of.turn.is_some());
        }
        frame.into_iter().collect()
    }

    /// The turn or the request that a compaction belongs to.
    pub(super) fn summarized_turn(&mut self) -> Option<&mut TurnFrames> {
        let open = self.open.clone();
        self.turns.iter_mut().find(|of| of.turn == open)
    }

    /// The reason of a compaction.
    pub(super) fn why(&self) -> &'static str {
        match self.open.as_ref().map(|turn| self.turn(turn).map_or(0, |of| of.steps)) {
            None => "manual",
            Some(0) => "auto-pre",
            Some(_) => "auto-mid",
        }
    }

    /// The history after a requested compaction. It belongs to no turn, because clients drop frames of other
    /// turns than their last one.
    fn summarized_history(&mut self, request: &str, prompt: &Prompt, at: Time) -> Option<Frame> {
        let (conversation, revision) =
            (self.context.conversation_ref.clone(), self.revision.clone()?);
        let named = conversation.clone().unwrap_or_default();
        let checkpoint = history::Checkpoint { conversation, revision, request };
        self.histories += 1;
        let kind = "model-history-updated";
        let mut frame = envelope(kind, &checkpoint.payload(prompt, true, at), &self.context, at);
        frame["id"] = request.into();
        frame["event_id"] = format!("{named}-evt-{:06}-{kind}", self.histories).into();
        frame["sequence"] = self.histories.into();
        Some(Frame { turn: String::new(), text: frame.to_string(), ends: None, handover: None })
    }
}
