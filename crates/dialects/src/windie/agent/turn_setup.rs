//! The setup of a query's turn: instructions, tools and model, from client, user and daemon. A dry run shows
//! the prompt that a turn would begin with.

use std::path::{Path, PathBuf};

use quintet_kernel::State;
use quintet_kernel::command::{Command, ImportedMessage, NewMessage, TurnStart};
use quintet_kernel::event::{NewSession, RareOptions, Setup, TurnOptions};
use quintet_kernel::message::{Part, Role};
use quintet_kernel::model::Sampling;
use quintet_kernel::port::Error;
use quintet_kernel::toolset::Toolset;
use serde_json::Value;

use super::system_prompt;
use super::tool_selection::{Abilities, ToolSelection};
use crate::fallback;
use crate::windie::serve::AppState;
use crate::windie::user_keys::account;
use crate::windie::wire::agent_definition::{Definition, Layer};
use crate::windie::wire::query::Query;
use crate::windie::wire::tool_manifest::Manifest;
use crate::windie::wire::user_settings::{Choice, Settings};

/// A client's agent: its definition, and its tools after validation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agent {
    pub(crate) definition: Definition,
    /// The client's own tools, if it provides any.
    pub(crate) manifest: Option<Manifest>,
}

impl Agent {
    pub(crate) fn new(definition: Definition) -> Self {
        let manifest = definition.tools.client_manifest.as_ref().map(Manifest::validate);
        Self { definition, manifest }
    }

    /// The tool selection for the agent.
    pub(crate) fn selection<'a>(
        &'a self,
        settings: &'a Settings,
        abilities: &'a Abilities,
    ) -> ToolSelection<'a> {
        static EMPTY: Manifest = Manifest { accepted: Vec::new(), rejected: Vec::new() };
        let manifest = self.manifest.as_ref().unwrap_or(&EMPTY);
        ToolSelection { definition: &self.definition, manifest, settings, abilities }
    }
}

/// The instructions, tools and model that answer a query.
#[derive(Clone, Debug)]
pub(crate) struct TurnSetup {
    pub(crate) system_prompt: String,
    pub(crate) toolset: Toolset,
    pub(crate) choice: Option<Choice>,
    /// The folder to work in, if it is on this machine.
    pub(crate) workspace: Option<PathBuf>,
    /// True if the answer should be spoken.
    pub(crate) speech: bool,
    /// True if the user has API keys of their own.
    pub(crate) has_keys: bool,
}

impl TurnSetup {
    /// The setup for an agent, with the folder and instructions of a query.
    pub(crate) async fn new(
        app: &AppState,
        agent: &Agent,
        settings: &Settings,
        (workspace, layers): (Option<&str>, &[Layer]),
    ) -> Self {
        let definition = &agent.definition;
        let named = workspace.or(definition.runtime.workspace_path.as_deref());
        let here = match named.filter(|_| !app.settings.install_auth) {
            Some(path) => here(Path::new(path)).await,
            None => None,
        };
        let mut system_prompt = system_prompt::system_prompt(definition, layers);
        if let (Some(path), None) = (named, &here) {
            system_prompt.push_str("\n\nOn the user's computer, the folder to work in is ");
            system_prompt.push_str(path.trim());
            system_prompt.push('.');
        }
        Self {
            system_prompt,
            toolset: agent.selection(settings, &app.abilities()).toolset(here.is_some()),
            choice: settings.choice(&app.settings.default_model),
            workspace: here,
            speech: settings.speech_mode_enabled,
            has_keys: !settings.provider_api_keys.is_empty(),
        }
    }

    /// The same with the repository rules of a query.
    pub(crate) fn with_rules(mut self, rules: &[String]) -> Self {
        for rule in rules {
            self.system_prompt.push_str("\n\n");
            self.system_prompt.push_str(rule.trim());
        }
        self
    }

    /// The message of a user's query, with the client's id of it.
    pub(crate) fn message(
        &self,
        (user, key): (&str, &str),
        query: &Query,
        front_end_data: Value,
    ) -> NewMessage {
        let effort = self.choice.as_ref().and_then(|choice| choice.effort);
        let account = self.has_keys.then(|| account(user));
        let options = TurnOptions {
            model: self.choice.as_ref().map(|choice| choice.model.clone()),
            sampling: Sampling { effort, ..Sampling::default() },
            key: Some(key.into()),
            wording: query.content.clone(),
            more: RareOptions { account, front_end_data, ..RareOptions::default() }.unless_empty(),
            ..TurnOptions::default()
        };
        let setup = Setup {
            system_prompt: Some(self.system_prompt.clone()),
            toolset: Some(self.toolset.clone()),
            workspace: self.workspace.clone(),
        };
        let text = vec![Part::Text(query.text.clone())];
        NewMessage { setup, ..NewMessage::new(Role::User, text, TurnStart::Queued, options) }
    }
}

/// The folder, if it exists on this machine.
async fn here(path: &Path) -> Option<PathBuf> {
    let folder = path.is_absolute() && tokio::fs::metadata(path).await.ok()?.is_dir();
    folder.then(|| path.to_owned())
}

/// The client and the settings of a dry run.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    /// The owner of the conversation.
    pub(crate) user: &'a str,
    pub(crate) agent: &'a Agent,
    pub(crate) settings: &'a Settings,
    /// The earlier messages of the conversation.
    pub(crate) before: Vec<ImportedMessage>,
}

impl AppState {
    /// The state of a new conversation at the model call of a query.
    pub(crate) async fn dry_run(&self, scene: Scene<'_>, query: &Query) -> Result<State, Error> {
        let extra = (query.workspace.as_deref(), &query.layers[..]);
        let plan = TurnSetup::new(self, scene.agent, scene.settings, extra).await;
        let workspace = match plan.workspace.clone() {
            Some(workspace) => workspace,
            // No tool runs, so the folder need not exist.
            None => self.scratch_path(scene.user),
        };
        let origin = NewSession { workspace, ..NewSession::default() };
        let mut commands = vec![Command::Create(origin)];
        if !scene.before.is_empty() {
            commands.push(Command::ImportMessages { messages: scene.before, instead: true });
        }
        let message = plan.message(("dry_run", "dry_run"), query, Value::Null);
        let try_out = |message| {
            let mut all = commands.clone();
            all.push(Command::AddMessage(Box::new(message)));
            self.ports.inspection.dry_run(None, all)
        };
        fallback::retry_reduced(message, try_out).await
    }
}
