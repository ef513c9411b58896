//! Declares the listener of the protocol for editors.

use std::sync::Arc;

use quintet_kernel::model::ModelRef;

use super::serve::run;
use crate::dialect::{
    Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol, Service,
    Services,
};

/// The name of the listener.
pub const LISTENER: &str = "acp";

/// The protocol of editors.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "acp",
    listeners: &[ListenerSpec::attached(LISTENER, "acp.sock")],
    options: &[],
    variables: &[],
    configure,
};

#[derive(Debug)]
struct Acp {
    default_model: ModelRef,
}

fn configure(config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    Ok(Box::new(Acp { default_model: config.default_model.clone() }))
}

impl Protocol for Acp {
    fn serve(&self, services: &Arc<Services>, _is_on: bool) -> ServedProtocol {
        let (services, default_model) = (Arc::clone(services), self.default_model.clone());
        let service =
            Service::Unix(Box::new(|socket| Box::pin(run(socket, services, default_model))));
        ServedProtocol {
            endpoints: vec![Endpoint { listener: LISTENER, service }],
            background: Vec::new(),
        }
    }
}
