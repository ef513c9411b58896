//! The agent server: sessions that fork and compact, over JSON-RPC on a WebSocket.
//! `docs/protocols/agent.md` is its text.
//!
//! A client that leaves `jsonrpc` out is one of the original server's, and is spoken to in that
//! server's own frames: see [`wire::Manner`].

mod audience;
mod book;
mod carry;
mod connection;
mod context;
mod decode;
mod detail;
mod dialect;
mod encode;
mod events;
mod folders;
mod health;
mod history;
mod original;
mod place;
mod question;
mod serve;
mod sessions;
mod shape;
mod shown;
mod stored;
mod subagent;
mod talk;
mod tree;
mod wire;
mod wish;

pub(crate) use dialect::DIALECT;

#[cfg(test)]
mod tests;
