//! The Agent Client Protocol, version 1, for editors.
//!
//! An editor starts `quintet acp` and exchanges JSON-RPC messages with it, one per line. That program only
//! copies bytes to this dialect's socket, so that all editors share one daemon, and turns continue when an
//! editor is killed. `serve` accepts connections, `connection` serves one editor, `decode` and `encode`
//! translate. All updates are made from the journal, so `session/load` replays exactly what was streamed.

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
