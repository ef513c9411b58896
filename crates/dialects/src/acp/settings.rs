//! The settings of a session that users can change: the approval mode, the model and its thought level.
//!
//! The mode is offered twice, as a mode and as an option: editors that know options ignore modes, and
//! some know only modes.

use quintet_kernel::State;
use quintet_kernel::event::{ApprovalMode, ToolUse, TurnOptions};
use quintet_kernel::model::{Effort, ModelInfo, ModelRef};
use serde_json::{Value, json};

/// The session labels that store the settings.
pub(super) const MODE_LABEL: &str = "acp_mode";
pub(super) const EFFORT_LABEL: &str = "acp_effort";
/// The ids of the options.
pub(super) const MODE: &str = "mode";
pub(super) const MODEL: &str = "model";
pub(super) const EFFORT: &str = "thought_level";
/// The most models that are listed.
const MODELS_LIMIT: usize = 500;

/// How calls are approved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// As configured.
    #[default]
    Default,
    /// Everything that does more than read needs approval.
    Strict,
    /// Only calls that a rule names need approval.
    Auto,
    /// The model has no tools.
    Chat,
}

impl Mode {
    const ALL: [Self; 4] = [Self::Default, Self::Strict, Self::Auto, Self::Chat];

    pub(super) fn parse(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.id() == id)
    }

    pub(super) fn id(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Strict => "strict",
            Self::Auto => "auto",
            Self::Chat => "chat",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Default => "Default",
            Self::Strict => "Ask always",
            Self::Auto => "Do not ask",
            Self::Chat => "Chat",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Default => "Ask for approval where the configuration says so",
            Self::Strict => "Ask for approval before every call that does more than read",
            Self::Auto => "Run calls without approval, but for those that a rule names",
            Self::Chat => "Answer without tools",
        }
    }
}

/// The settings of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) mode: Mode,
    pub(super) model: ModelRef,
    pub(super) effort: Option<Effort>,
}

impl Settings {
    pub(super) fn of(state: &State) -> Self {
        let label = |key: &str| state.labels.get(key).map(String::as_str);
        Self {
            mode: label(MODE_LABEL).and_then(Mode::parse).unwrap_or_default(),
            model: state.model.as_ref().unwrap_or(&state.rules().default_model).clone(),
            effort: label(EFFORT_LABEL).and_then(Effort::parse),
        }
    }

    /// Applies a changed label; false if it is not a setting.
    pub(super) fn apply_label(&mut self, key: &str, value: Option<&str>) -> bool {
        match key {
            MODE_LABEL => self.mode = value.and_then(Mode::parse).unwrap_or_default(),
            EFFORT_LABEL => self.effort = value.and_then(Effort::parse),
            _ => return false,
        }
        true
    }

    /// The options of the next turn.
    pub(super) fn turn_options(&self, models: &[ModelInfo]) -> TurnOptions {
        let mut options = TurnOptions::default();
        match self.mode {
            Mode::Default => {}
            Mode::Strict => options.asking = ApprovalMode::Strict,
            Mode::Auto => options.asking = ApprovalMode::Waived,
            Mode::Chat => options.tools = ToolUse::Withheld,
        }
        let efforts = self.efforts(models);
        options.sampling.effort = self.effort.filter(|effort| efforts.contains(effort));
        options
    }

    fn efforts<'a>(&self, models: &'a [ModelInfo]) -> &'a [Effort] {
        let listed = models.iter().find(|listed| listed.model == self.model);
        listed.map(|listed| &listed.about.efforts[..]).unwrap_or_default()
    }

    /// The modes, as responses contain them.
    pub(super) fn modes(&self) -> Value {
        let mode = |mode: Mode| json!({ "id": mode.id(), "name": mode.name(), "description": mode.description() });
        json!({ "currentModeId": self.mode.id(), "availableModes": Mode::ALL.map(mode) })
    }

    /// The options, as responses contain them.
    pub(super) fn options(&self, models: &[ModelInfo]) -> Value {
        let mode = |mode: Mode| json!({ "value": mode.id(), "name": mode.name(), "description": mode.description() });
        let mut options = vec![
            json!({
                "id": MODE, "name": "Approval", "category": "mode", "type": "select",
                "description": "Which calls need approval",
                "currentValue": self.mode.id(), "options": Mode::ALL.map(mode),
            }),
            json!({
                "id": MODEL, "name": "Model", "category": "model", "type": "select",
                "currentValue": self.model.to_string(), "options": self.listed(models),
            }),
        ];
        let (efforts, listed) = (self.efforts(models), models.iter());
        if !efforts.is_empty() {
            let own = listed.clone().find(|listed| listed.model == self.model);
            let usual = own.and_then(|listed| listed.about.default_effort).unwrap_or(efforts[0]);
            let current = self.effort.filter(|effort| efforts.contains(effort)).unwrap_or(usual);
            let effort = |effort: &Effort| json!({ "value": effort.name(), "name": effort.name() });
            options.push(json!({
                "id": EFFORT, "name": "Thinking", "category": "thought_level", "type": "select",
                "description": "How much the model thinks before it answers",
                "currentValue": current.name(),
                "options": efforts.iter().map(effort).collect::<Vec<_>>(),
            }));
        }
        options.into()
    }

    /// The models that can be chosen; the chosen one is always among them.
    fn listed(&self, models: &[ModelInfo]) -> Vec<Value> {
        let one = |listed: &ModelInfo| {
            let value = listed.model.to_string();
            let name = Some(&listed.about.label).filter(|label| !label.is_empty());
            let name = name.unwrap_or(&value).clone();
            match &listed.about.description {
                Some(about) => json!({ "value": value, "name": name, "description": about }),
                None => json!({ "value": value, "name": name }),
            }
        };
        let known = models.iter().take(MODELS_LIMIT);
        let missing = !known.clone().any(|listed| listed.model == self.model);
        let own = self.model.to_string();
        let own = missing.then(|| json!({ "value": own.clone(), "name": own }));
        own.into_iter().chain(known.map(one)).collect()
    }
}
