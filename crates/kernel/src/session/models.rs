//! What is known of the models that a session may ask.
//!
//! Data that is handed to a session before each decision: whoever knows models may learn more at any
//! time, and the same decision must come to the same end.

use std::collections::HashMap;

use crate::command::Command;
use crate::model::{ModelRef, Profile};
use crate::session::state::State;

/// What is told of the workspace takes at most this part of the context window.
const CONTEXT_WINDOW_SHARE: u64 = 8;

impl State {
    /// The models that a decision on this command may have to know.
    pub fn models_for(&self, command: &Command) -> Vec<ModelRef> {
        let named = match command {
            Command::Create(origin) => origin.model.as_ref(),
            Command::SwitchModel(model) => Some(model),
            Command::AddMessage(say) => say.options.model.as_ref(),
            Command::StartTurn { turn } => {
                self.turn(turn).and_then(|turn| turn.options.model.as_ref())
            }
            Command::SetLabel { .. }
            | Command::SetSystemPrompt { .. }
            | Command::SetWorkspace { .. }
            | Command::SetTools(_)
            | Command::Attach(_)
            | Command::Approve(_)
            | Command::ClaimCalls { .. }
            | Command::ReturnResult { .. }
            | Command::Disconnect { .. }
            | Command::Cancel { .. }
            | Command::CancelTurn { .. }
            | Command::ImportMessages { .. }
            | Command::Supersede { .. }
            | Command::Revert { .. }
            | Command::Reapply { .. }
            | Command::Compact
            | Command::CompactWith { .. }
            | Command::Close { .. }
            | Command::ModelOutput { .. }
            | Command::ModelRetrying { .. }
            | Command::ModelCompleted { .. }
            | Command::ModelFailed { .. }
            | Command::ContextGathered { .. }
            | Command::Assessed { .. }
            | Command::Reviewed { .. }
            | Command::SpawnSubagent { .. }
            | Command::Subagent { .. }
            | Command::CallFinished { .. }
            | Command::RevertFinished { .. }
            | Command::SummaryWritten { .. }
            | Command::SummaryFailed { .. }
            | Command::MemorySaved { .. }
            | Command::Recover { .. }
            | Command::Wake => None,
        };
        let step = self.open.as_ref().and_then(|open| open.step()).map(|step| &step.model);
        let open = self.open.as_ref().and_then(|open| open.options.model.as_ref());
        let queued = self.turns.next_queued().and_then(|turn| turn.options.model.as_ref());
        let usual = self.model.as_ref().unwrap_or(&self.rules.default_model);
        let mut models: Vec<ModelRef> =
            [named, step, open, queued].into_iter().flatten().chain([usual]).cloned().collect();
        models.dedup();
        models
    }

    /// Takes what is known of the models that the next decision may have to know, in place of what was
    /// known before. A model that is not among them cannot be asked.
    pub fn set_profiles(&mut self, profiles: HashMap<ModelRef, Profile>) {
        self.profiles = profiles;
    }

    /// What a model can do; nothing if there is no such provider.
    pub fn profile(&self, model: &ModelRef) -> Option<&Profile> {
        self.profiles.get(model)
    }

    /// Tokens that the model reads at once: as it was when the open step began, else as it is known to
    /// be, else a guess; less where that turned out to be too much.
    pub fn window(&self) -> u64 {
        let step = self.open.as_ref().and_then(|open| open.step());
        let known = || self.profile(self.current_model())?.context_window;
        let window = step.and_then(|step| step.context_window).or_else(known);
        let window = window.unwrap_or(self.rules.limits.assumed_window);
        self.compaction.window.map_or(window, |most| window.min(most))
    }

    /// How many tokens the model is told of the workspace. One with a short memory is told less: it
    /// needs the room for the conversation.
    pub fn context_budget(&self) -> u64 {
        self.rules.context_tokens.min(self.window() / CONTEXT_WINDOW_SHARE)
    }
}
