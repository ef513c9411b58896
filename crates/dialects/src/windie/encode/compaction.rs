//! What a client is told of summaries: those of a turn, and those that it asked for.

use quintet_kernel::Time;
use quintet_kernel::event::Seq;
use quintet_kernel::model::Prompt;
use serde_json::{Value, json};

use super::turn_frames::{Frame, TurnFrames};
use super::{Link, errors, history};
use crate::windie::wire::envelope;

/// How much of a summary is shown, in characters.
const LONGEST_PREVIEW: usize = 180;

impl Link {
    /// The client asked for a summary, under this name, which begins with this event; what comes of it is
    /// told under that name.
    pub(crate) fn compacting(&mut self, request: &str, begins: Seq) {
        self.summary = Some((request.into(), begins));
    }

    /// The summary that the client asked for is not made, and why.
    pub(crate) fn not_compacted(&mut self, request: &str, reason: &str, at: Time) -> Frame {
        let payload = json!({
            "reason": "manual",
            "strategy": "auto",
            "removed_messages": 0,
            "skipped_reason": reason,
        });
        self.new_line(None, request).frame("context-compaction-completed", &payload, at)
    }

    /// A summary begins with an event, perhaps the one that the client asked for.
    pub(super) fn summarizing(&mut self, begins: Seq, tokens: u64, at: Time) -> Vec<Frame> {
        if let Some((request, _)) = self.summary.take_if(|(_, seq)| *seq == begins) {
            let line = self.new_line(None, &request);
            self.lines.push(line);
        }
        self.before = tokens;
        let added = self.summarized_line().map_or(0, |line| line.added);
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
        let preview: String = summary.chars().take(LONGEST_PREVIEW).collect();
        let mut payload = json!({
            "reason": self.why(),
            "strategy": "auto",
            "before_tokens": self.before,
            "after_tokens": prompt.map(history::weight),
            "removed_messages": messages,
            "summary_preview": preview,
            "skipped_reason": null,
        });
        if let Some(prompt) = prompt {
            payload["replacement_history_entries"] = history::entries(prompt, true).into();
        }
        let request = self.summarized_line().filter(|line| line.turn.is_none());
        let request = request.map(|line| line.name().to_owned());
        let mut frames = self.compaction("context-compaction-completed", &payload, at);
        let history = request.zip(prompt);
        frames
            .extend(history.and_then(|(name, prompt)| self.summarized_history(&name, prompt, at)));
        frames
    }

    /// A summary could not be made.
    pub(super) fn not_summarized(&mut self, reason: &str, at: Time) -> Vec<Frame> {
        let payload = json!({
            "reason": self.why(),
            "strategy": "auto",
            "error": errors::sanitized(reason),
        });
        self.compaction("context-compaction-failed", &payload, at)
    }

    /// Tells of a summary under the name of the turn it is made in, or else of whoever asked for it.
    fn compaction(&mut self, kind: &'static str, payload: &Value, at: Time) -> Vec<Frame> {
        let over = kind != "context-compaction-started";
        let frames: Vec<Frame> =
            self.summarized_line().map(|line| line.frame(kind, payload, at)).into_iter().collect();
        if over {
            self.lines.retain(|line| line.turn.is_some());
        }
        frames
    }

    /// The turn that a summary is made in, or whoever asked for it.
    pub(super) fn summarized_line(&mut self) -> Option<&mut TurnFrames> {
        let open = self.open.clone();
        self.lines.iter_mut().find(|line| line.turn == open)
    }

    /// Why there is a summary.
    pub(super) fn why(&self) -> &'static str {
        match self.open.as_ref().map(|turn| self.line(turn).map_or(0, |line| line.steps)) {
            None => "manual",
            Some(0) => "auto-pre",
            Some(_) => "auto-mid",
        }
    }

    /// The history that a summary led to which the client asked for. It belongs to no turn: clients drop
    /// what belongs to another turn than their last one.
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
        Some(Frame { turn: String::new(), text: frame.to_string(), ends: None, hands: None })
    }
}
