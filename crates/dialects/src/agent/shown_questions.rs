//! The questions that were sent to a connection; an answer without an id is for one of them.

use std::collections::HashSet;

use quintet_kernel::event::{Event, SubagentUpdate};
use quintet_kernel::tool::Placement;
use quintet_kernel::{ApprovalId, Item};
use serde_json::Value;

/// Questions that are remembered; a client that was shown more may have to send the id with its answer.
const QUESTIONS_LIMIT: usize = 1000;

/// The questions that a connection was shown.
#[derive(Debug, Default)]
pub(super) struct ShownQuestions(HashSet<String>);

impl ShownQuestions {
    pub(super) fn has(&self, question: &ApprovalId) -> bool {
        self.0.contains(question.as_str())
    }

    /// Adds the question of an item that was sent to the client.
    pub(super) fn add_from_item(&mut self, item: &Item) {
        let Item::Event(record) = item else { return };
        match &record.event {
            Event::ApprovalRequested { call, .. }
            | Event::CallStarted { call, placement: Placement::Client, .. } => {
                self.add(call.as_str());
            }
            Event::QuestionAsked { id, .. } => self.add(id.as_str()),
            Event::TurnHeld { turn, .. } => self.add(turn.as_str()),
            Event::Subagent { news: SubagentUpdate::Asked { call, .. }, .. } => {
                self.add(call.as_str());
            }
            _ => {}
        }
    }

    /// Adds the open questions in a result that was sent to the client.
    pub(super) fn add_from_result(&mut self, result: &Value) {
        let pending = result["pending"].as_array().into_iter().flatten();
        for id in pending.filter_map(|one| one["toolId"].as_str()) {
            self.add(id);
        }
    }

    fn add(&mut self, id: &str) {
        if self.0.len() >= QUESTIONS_LIMIT {
            self.0.clear();
        }
        self.0.insert(id.to_owned());
    }
}
