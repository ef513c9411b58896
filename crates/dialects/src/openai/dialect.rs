//! Declares the OpenAI-compatible API: its listener and its options.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::abandoned::cancel_abandoned;
use super::serve::{Settings, refuse, router};
use crate::dialect::{
    AccessRules, Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol,
    Service, Services, Shape, Task,
};

/// The OpenAI-compatible API.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "openai",
    listeners: &[ListenerSpec::http("openai", "127.0.0.1:8701")],
    options: &[
        ("openai.workspace", Shape::Text, None),
        ("openai.tool_timeout", Shape::Number, Some("3600")),
        ("openai.hosts", Shape::List, Some("[]")),
    ],
    variables: &[],
    configure,
};

#[derive(Debug)]
struct OpenAi {
    settings: Settings,
    hosts: Vec<String>,
}

fn configure(config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    let timeout = config.values.number("openai.tool_timeout").filter(|seconds| *seconds > 0);
    let settings = Settings {
        workspace: workspace(config)?,
        default_model: config.default_model.clone(),
        tool_timeout: timeout.map(Duration::from_secs),
    };
    Ok(Box::new(OpenAi { settings, hosts: config.list("openai.hosts") }))
}

fn workspace(config: &Config<'_>) -> Result<PathBuf, ConfigError> {
    let key = "openai.workspace";
    let Some(given) = config.text(key) else { return Ok(config.data_dir.join("workspace")) };
    if !Path::new(given).is_absolute() {
        let source = config.values.source(key);
        return Err(ConfigError(format!(
            "{key} must be an absolute path, not {given:?} ({source})"
        )));
    }
    Ok(given.into())
}

impl Protocol for OpenAi {
    fn serve(&self, services: &Arc<Services>, _is_on: bool) -> ServedProtocol {
        let abandoned = cancel_abandoned(Arc::clone(services), services.closing.clone());
        let service = Service::Http {
            router: router(Arc::clone(services), self.settings.clone()),
            access: AccessRules::new(self.hosts.clone(), refuse),
        };
        ServedProtocol {
            endpoints: vec![Endpoint { listener: "openai", service }],
            background: vec![("requests that a restart interrupted", Task::new(abandoned))],
        }
    }
}

#[cfg(test)]
mod tests;
