//! The agent server: sessions that fork and compact, over JSON-RPC on a WebSocket.
//! `docs/protocols/agent.md` is its text.
//!
//! A client that leaves `jsonrpc` out is one of the original server's and gets that server's own frames:
//! see [`wire::Framing`].

mod connection;
mod context;
mod decode;
mod detail;
mod dialect;
mod dispatch;
mod encode;
mod event_id;
mod events;
mod folders;
mod health;
mod history;
mod legacy;
mod messages;
mod question;
mod request;
mod serve;
mod session_context;
mod sessions;
mod shape;
mod shown_questions;
mod stored;
mod subagent;
mod subscriptions;
mod tree;
mod wire;

pub(crate) use dialect::DIALECT;

#[cfg(test)]
mod tests;
