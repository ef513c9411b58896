//! A user's settings: loads, changes and stores them.

use super::{Connection, RequestError};
use crate::windie::agent::turn_setup::Agent;
use crate::windie::serve::AppState;
use crate::windie::user_keys::SPACE;
use crate::windie::wire;
use crate::windie::wire::user_settings::{Patch, Settings, SettingsError};

impl Connection {
    pub(super) async fn load_settings(&mut self, id: &str) -> Result<(), RequestError> {
        let settings = self.app.settings_of(&self.identity.id).await?;
        let answer = wire::settings_loaded(id, &settings, &self.app.settings.default_model);
        self.answer(&answer);
        Ok(())
    }

    /// Changes the agent of this connection, and the settings of the user.
    pub(super) async fn update_settings(
        &mut self,
        id: &str,
        patch: Patch,
    ) -> Result<(), RequestError> {
        let updated = patch.updated_keys.clone();
        let mut definition = patch.definition.clone();
        if let Some(tools) = &patch.tools {
            let changed = definition.get_or_insert_with(|| self.agent.definition.clone());
            changed.tools.mode = tools.mode.unwrap_or(changed.tools.mode);
            if tools.client_manifest.is_some() {
                changed.tools.client_manifest.clone_from(&tools.client_manifest);
            }
        }
        let settings = self.app.change_settings(&self.identity.id, patch).await?;
        if let Some(definition) = definition {
            self.agent = Agent::new(definition);
            self.send_manifest();
        }
        self.answer(&wire::settings_updated(id, &updated, &settings, self.app.voice()));
        Ok(())
    }
}

impl AppState {
    /// The settings of a user; the defaults only if the user never changed any.
    pub(crate) async fn settings_of(&self, user: &str) -> Result<Settings, SettingsError> {
        let stored = self.ports.preferences.preference(SPACE, user).await;
        let stored = stored.map_err(SettingsError::Read)?.map(Settings::kept).transpose();
        Ok(stored.map_err(|unreadable| SettingsError::Read(unreadable.into()))?.unwrap_or_default())
    }

    async fn change_settings(&self, user: &str, patch: Patch) -> Result<Settings, SettingsError> {
        let _lock = self.settings_lock.lock().await;
        let mut settings = self.settings_of(user).await?;
        settings.apply(patch);
        let stored = self.ports.preferences.set_preference(SPACE, user, settings.keep()).await;
        stored.map_err(SettingsError::Write)?;
        Ok(settings)
    }
}
