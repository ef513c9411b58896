//! Requests from one node to another.

use super::{BoxFuture, NodeAddress};

/// Outbound: sends requests to other nodes. The runtime defines their content.
pub trait Forward: Send + Sync {
    /// Sends a request to a node and returns its reply.
    fn send(&self, to: &NodeAddress, body: Vec<u8>)
    -> BoxFuture<'_, Result<Vec<u8>, ForwardError>>;
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// The request did not reach the node, so it had no effect.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The request may have been executed.
    #[error("gave no reply: {0}")]
    Unanswered(String),
}
