//! Declares the terminal protocol: its socket and its options.

use std::path::PathBuf;
use std::sync::Arc;

use super::files::Folders;
use super::serve::{Settings, run};
use crate::dialect::{
    Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol, Service,
    Services, Shape, Transport,
};

/// The terminal front end.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "terminal",
    listeners: &[ListenerSpec {
        name: "terminal",
        default: "auto",
        transport: Transport::Unix("openagent-terminal-{pid}.sock"),
        required: true,
        dev_port_offset: 0,
    }],
    options: &[
        ("terminal.sessions_dir", Shape::Text, None),
        ("terminal.context_tokens", Shape::Number, Some("2000")),
        ("terminal.approval_timeout_seconds", Shape::Number, Some("300")),
    ],
    variables: &[],
    configure,
};

#[derive(Debug)]
struct Terminal {
    settings: Settings,
}

fn configure(config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    let seconds = config.values.number("terminal.approval_timeout_seconds");
    let settings = Settings {
        default_model: config.default_model.clone(),
        folders: Folders::new(folders(config)?),
        context_tokens: config.values.number("terminal.context_tokens").unwrap_or_default(),
        answer_within_ms: seconds.filter(|seconds| *seconds > 0).map(|s| s.saturating_mul(1000)),
    };
    Ok(Box::new(Terminal { settings }))
}

/// The folders that sessions may be saved in.
fn folders(config: &Config<'_>) -> Result<Vec<PathBuf>, ConfigError> {
    let key = "terminal.sessions_dir";
    let home = || config.home().map(|home| home.join(".openagent/sessions"));
    let own = config.values.text(key).map(PathBuf::from).or_else(home);
    if let Some(own) = own.as_ref().filter(|own| !own.is_absolute()) {
        let source = config.values.source(key);
        return Err(ConfigError(format!("{key} must be an absolute path, not {own:?} ({source})")));
    }
    Ok(own.into_iter().chain([config.data_dir.join("saved")]).collect())
}

impl Protocol for Terminal {
    fn serve(&self, services: &Arc<Services>, _is_on: bool) -> ServedProtocol {
        let (services, settings) = (Arc::clone(services), self.settings.clone());
        let service = Service::Unix(Box::new(|socket| Box::pin(run(socket, services, settings))));
        ServedProtocol {
            endpoints: vec![Endpoint { listener: "terminal", service }],
            background: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
