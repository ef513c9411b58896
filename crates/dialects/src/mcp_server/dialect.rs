//! Declares the two listeners of the MCP server.

use std::sync::Arc;

use super::serve::{refuse, router, run};
use super::sessions::SessionTools;
use crate::dialect::{
    AccessRules, Config, ConfigError, Dialect, Endpoint, ListenerSpec, Protocol, ServedProtocol,
    Service, Services,
};

/// The MCP server.
pub(crate) const DIALECT: Dialect = Dialect {
    name: "mcp_server",
    listeners: &[ListenerSpec::http("mcp", "off"), ListenerSpec::attached("mcp_stdio", "mcp.sock")],
    options: &[],
    variables: &[],
    configure,
};

#[derive(Debug)]
struct McpServer;

fn configure(_config: &Config<'_>) -> Result<Box<dyn Protocol>, ConfigError> {
    Ok(Box::new(McpServer))
}

impl Protocol for McpServer {
    fn serve(&self, services: &Arc<Services>, _is_on: bool) -> ServedProtocol {
        let tools = SessionTools { sessions: Arc::clone(&services.sessions) };
        let http = Service::Http {
            router: router(tools.clone(), &services.closing),
            access: AccessRules::new(Vec::new(), refuse),
        };
        let closing = services.closing.clone();
        let stdio = Service::Unix(Box::new(|socket| Box::pin(run(socket, tools, closing))));
        ServedProtocol {
            endpoints: vec![
                Endpoint { listener: "mcp", service: http },
                Endpoint { listener: "mcp_stdio", service: stdio },
            ],
            background: Vec::new(),
        }
    }
}
