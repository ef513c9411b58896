//! A user's settings: loads, changes and stores them.

use super::{Connection, PendingOutput, Trouble};
use crate::windie::agent::turn_setup::Agent;
use crate::windie::serve::AppState;
use crate::windie::user_keys::SPACE;
use crate::windie::wire;
use crate::windie::wire::user_settings::{Patch, Settings, SettingsError};

impl Connection {
    pub(super) async fn load_settings(
        &self,
        id: &str,
        out: &mut PendingOutput,
    ) -> Result<(), Trouble> {
        let settings = self.app.settings_of(&self.identity.id).await?;
        let usual = &self.app.settings.default_model;
        out.answers.push(wire::settings_loaded(id, &settings, usual));
        Ok(())
    }

    /// What concerns agents is this connection's, all else the user's.
    pub(super) async fn update_settings(
        &mut self,
        id: &str,
        patch: Patch,
        out: &mut PendingOutput,
    ) -> Result<(), Trouble> {
        let updated = patch.updated_keys.clone();
        let mut definition = patch.definition.clone();
        if let Some(tools) = &patch.tools {
            let changed = definition.get_or_insert_with(|| self.agent.definition.clone());
            changed.tools.mode = tools.mode.unwrap_or(changed.tools.mode);
            if tools.client_manifest.is_some() {
                changed.tools.client_manifest.clone_from(&tools.client_manifest);
            }
        }
        let settings = self.app.set(&self.identity.id, patch).await?;
        if let Some(definition) = definition {
            self.agent = Agent::new(definition);
            out.answers.extend(self.brought());
        }
        out.answers.push(wire::settings_updated(id, &updated, &settings, self.app.voice()));
        Ok(())
    }
}

impl AppState {
    /// What a user set; the defaults only if the user never set anything.
    pub(crate) async fn settings_of(&self, user: &str) -> Result<Settings, SettingsError> {
        let kept = self.ports.preferences.preference(SPACE, user).await;
        let kept = kept.map_err(SettingsError::Read)?.map(Settings::kept).transpose();
        Ok(kept.map_err(|unreadable| SettingsError::Read(unreadable.into()))?.unwrap_or_default())
    }

    async fn set(&self, user: &str, patch: Patch) -> Result<Settings, SettingsError> {
        let _alone = self.setting.lock().await;
        let mut settings = self.settings_of(user).await?;
        settings.apply(patch);
        let kept = self.ports.preferences.set_preference(SPACE, user, settings.keep()).await;
        kept.map_err(SettingsError::Write)?;
        Ok(settings)
    }
}
