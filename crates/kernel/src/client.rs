//! Clients that run tool calls, and their claims on calls.

use serde::{Deserialize, Serialize};

use crate::time::Time;

/// A client that runs calls for sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClientRef {
    /// The name that the client keeps across connections. The part before the first `/`
    /// names the front end.
    pub name: String,
    /// The connection in use; `None` for protocols that cannot tell connections apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
}

impl ClientRef {
    /// A client on one of its connections.
    pub fn connected(name: impl Into<String>, connection: impl Into<String>) -> Self {
        Self { name: name.into(), connection: Some(connection.into()) }
    }

    /// A client on any of its connections.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), connection: None }
    }

    /// The front end of the client.
    pub fn front_end(&self) -> &str {
        self.name.split_once('/').map_or(self.name.as_str(), |(front_end, _)| front_end)
    }
}

/// The right of one client to run a call and to return its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The holder.
    pub by: ClientRef,
    /// The end of the holder's grace time; given once its connection is lost.
    pub lost_until: Option<Time>,
}

impl Claim {
    /// True if the client holds this claim: on the connection that made it, or on any connection once
    /// that one is lost.
    pub fn is_held_by(&self, client: &ClientRef) -> bool {
        let here = client.connection.is_none() || client.connection == self.by.connection;
        client.name == self.by.name && (here || self.lost_until.is_some())
    }
}
