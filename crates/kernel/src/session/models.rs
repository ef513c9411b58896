//! Profiles of the models that a session may call.
//!
//! They are passed to a session before each decision: profiles may change at any time, and a
//! decision must depend only on its inputs.

use std::collections::HashMap;

use crate::command::Command;
use crate::model::{ModelRef, Profile};
use crate::session::state::State;

/// The workspace description takes at most 1/8 of the context window.
const CONTEXT_WINDOW_SHARE: u64 = 8;

impl State {
    /// The models that a decision on this command may need.
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
            | Command::AskUser { .. }
            | Command::WithdrawQuestion { .. }
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

    /// Replaces the profiles. A model without a profile cannot be called.
    pub fn set_profiles(&mut self, profiles: HashMap<ModelRef, Profile>) {
        self.profiles = profiles;
    }

    /// The profile of a model; `None` if its provider is not configured.
    pub fn profile(&self, model: &ModelRef) -> Option<&Profile> {
        self.profiles.get(model)
    }

    /// The context window in tokens: as recorded when the open step started, or as in the
    /// profile, or a default; less if that turned out to be too much.
    pub fn window(&self) -> u64 {
        let step = self.open.as_ref().and_then(|open| open.step());
        let known = || self.profile(self.current_model())?.context_window;
        let window = step.and_then(|step| step.context_window).or_else(known);
        let window = window.unwrap_or(self.rules.limits.assumed_window);
        self.compaction.window.map_or(window, |most| window.min(most))
    }

    /// Tokens of the workspace description. Less for models with a small context window.
    pub fn context_budget(&self) -> u64 {
        self.rules.context_tokens.min(self.window() / CONTEXT_WINDOW_SHARE)
    }
}
