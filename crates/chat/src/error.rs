//! Why there is no conversation.

use std::io;
use std::path::PathBuf;

/// Why there is no conversation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no daemon answers on a terminal socket in {0}; start `quintet serve` with `[listen] terminal` \
         set, or name its socket with --socket"
    )]
    Nobody(PathBuf),
    #[error(
        "no daemon answers on {0} ({1}); is `quintet serve` running with `[listen] terminal` set to it?"
    )]
    Silent(PathBuf, #[source] io::Error),
    #[error("{0} belongs to another user")]
    Foreign(PathBuf),
    #[error("the handshake with the daemon failed: {0}")]
    Handshake(String),
    /// The connection broke and could not be had again.
    #[error("the connection to the daemon was lost")]
    Gone,
    /// The daemon said no.
    #[error("{0}")]
    Refused(String),
    #[error("the terminal cannot be used")]
    Terminal(#[source] io::Error),
    #[error("the answer cannot be written")]
    Output(#[source] io::Error),
}
