//! Declares the web console: its listener and its options.

use std::sync::Arc;

use super::access::Login;
use super::app_state::AppState;
use super::serve::{refuse, router};
use crate::dialect::{
    AccessRules, Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol,
    Service, Services, Shape,
};

/// The listener of the console.
pub const LISTENER: &str = "console";

/// The web console.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "console",
    listeners: &[ListenerSpec::http(LISTENER, "127.0.0.1:8700")],
    options: &[("console.hosts", Shape::List, Some("[]"))],
    variables: &[],
    configure,
};

#[derive(Debug)]
struct Console {
    login: Login,
    hosts: Vec<String>,
    default_model: String,
}

fn configure(config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    Ok(Box::new(Console {
        login: Login::new(config.text("auth.token")),
        hosts: config.list("console.hosts"),
        default_model: config.default_model.to_string(),
    }))
}

impl Protocol for Console {
    fn serve(&self, services: &Arc<Services>, _is_on: bool) -> ServedProtocol {
        let app = AppState::new(services, self.default_model.clone());
        let access = AccessRules::new(self.hosts.clone(), refuse);
        let service = Service::Http {
            router: router(app, self.login.clone()),
            // The console itself checks the cookie of a browser.
            access: AccessRules { has_own_auth: |_| true, ..access },
        };
        ServedProtocol {
            endpoints: vec![Endpoint { listener: LISTENER, service }],
            background: Vec::new(),
        }
    }
}
