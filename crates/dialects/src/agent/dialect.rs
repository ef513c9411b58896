//! Declares the agent server: its WebSocket, its health service and its options.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::health::health;
use super::serve::{Settings, refuse, router};
use crate::dialect::{
    AccessRules, Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol,
    Service, Services, Shape, Transport,
};
use crate::transport::access::Token;

/// The agent server.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "agent",
    listeners: &[
        ListenerSpec {
            transport: Transport::WebSocket,
            dev_port_offset: 2,
            ..ListenerSpec::http("agent", "127.0.0.1:8080")
        },
        ListenerSpec { dev_port_offset: 2, ..ListenerSpec::http("agent_health", "127.0.0.1:8081") },
    ],
    options: &[
        ("agent.auth_token", Shape::Secret, None),
        ("agent.hosts", Shape::List, Some("[]")),
        ("agent.ping_seconds", Shape::Number, Some("30")),
        ("agent.silence_seconds", Shape::Number, Some("75")),
    ],
    variables: &[],
    configure,
};

#[derive(Debug)]
struct Agent {
    default_model: String,
    home: Option<PathBuf>,
    providers: Vec<String>,
    token: Option<Token>,
    hosts: Vec<String>,
    ping: Duration,
    silence: Duration,
}

fn configure(config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    let seconds = |key: &str| Duration::from_secs(config.values.number(key).unwrap_or(1).max(1));
    Ok(Box::new(Agent {
        default_model: config.default_model.to_string(),
        home: config.home(),
        providers: config.providers.to_vec(),
        token: config.token("agent.auth_token"),
        hosts: config.list("agent.hosts"),
        ping: seconds("agent.ping_seconds"),
        silence: seconds("agent.silence_seconds"),
    }))
}

impl Protocol for Agent {
    fn serve(&self, services: &Arc<Services>, _is_on: bool) -> ServedProtocol {
        let settings = Settings {
            home: self.home.clone(),
            default_model: self.default_model.clone(),
            providers: self.providers.clone(),
            closing: services.closing.clone(),
            connections: Arc::default(),
            ping: self.ping,
            silence: self.silence,
        };
        let access = AccessRules::new(self.hosts.clone(), refuse);
        let socket = Service::Http {
            router: router(Arc::clone(services), settings.clone()),
            access: AccessRules { token: self.token.clone(), ..access.clone() },
        };
        let health = Service::Http { router: health(Arc::clone(services), settings), access };
        ServedProtocol {
            endpoints: vec![
                Endpoint { listener: "agent", service: socket },
                Endpoint { listener: "agent_health", service: health },
            ],
            background: Vec::new(),
        }
    }
}
