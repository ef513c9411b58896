//! The Agent Client Protocol, version 1: editors.
//!
//! An editor starts `quintet acp` and speaks JSON-RPC with it, a message a line. That program only
//! copies bytes to this dialect's socket, so that all editors share one daemon, and what they began goes
//! on when they are killed. `serve` accepts, `connection` answers one editor, `decode` and `encode`
//! translate. What a session tells an editor is made of its journal: what `session/load` replays is what
//! was streamed.

mod commands;
mod connection;
mod decode;
mod dialect;
mod diff;
mod elicitation;
mod encode;
mod permission;
mod serve;
mod settings;
#[cfg(test)]
mod tests;
mod tool_call;
mod wire;

pub use decode::IMPORT;
pub(crate) use dialect::DIALECT;
pub use dialect::LISTENER;
