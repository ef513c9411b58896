//! The errors of the client.

use std::io;
use std::path::PathBuf;

/// Why a conversation could not start or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no daemon answers on a terminal socket in {0}; start `quintet serve` with `[listen] terminal` \
         set, or name its socket with --socket"
    )]
    NoDaemon(PathBuf),
    #[error(
        "no daemon answers on {0} ({1}); is `quintet serve` running with `[listen] terminal` set to it?"
    )]
    Unreachable(PathBuf, #[source] io::Error),
    #[error(
        "{0} belongs to another user, so it is not used; name your own daemon's socket with --socket"
    )]
    OtherOwner(PathBuf),
    #[error("the daemon refused the handshake: {0}")]
    Handshake(String),
    /// The connection broke and could not be opened again.
    #[error("the connection to the daemon was lost; is `quintet serve` still running?")]
    ConnectionLost,
    /// The daemon refused a request.
    #[error("{0}")]
    Refused(String),
    #[error("the terminal cannot be used")]
    Terminal(#[source] io::Error),
    #[error("the answer cannot be written")]
    Output(#[source] io::Error),
}
