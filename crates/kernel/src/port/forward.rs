//! Requests from one node to another.

use super::{BoxFuture, NodeAddress};

/// Outbound: carries requests to other nodes. What is in them is the runtime's business.
pub trait Forward: Send + Sync {
    /// Hands a request to a node and gives its reply.
    fn send(&self, to: &NodeAddress, body: Vec<u8>)
    -> BoxFuture<'_, Result<Vec<u8>, ForwardError>>;
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    /// The request did not reach the node, so it had no effect.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// The request may have been carried out.
    #[error("gave no reply: {0}")]
    Unanswered(String),
}
