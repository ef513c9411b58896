//! Computes the prompt that a model would get, by the decisions of a real query on a temporary session.

use quintet_kernel::State;
use quintet_kernel::command::{Command, ImportedMessage};
use quintet_kernel::event::NewSession;
use quintet_kernel::port::Error;
use serde_json::Value;

use super::turn_setup::{Agent, TurnSetup};
use crate::fallback;
use crate::windie::serve::AppState;
use crate::windie::wire::query::Query;
use crate::windie::wire::user_settings::Settings;

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
