//! The agent server: sessions with forks and compaction, over JSON-RPC on a WebSocket. See
//! `docs/protocols/agent.md`.
//!
//! A client that leaves out `jsonrpc` was written for the original server and gets that server's frames:
//! see [`wire::Framing`].

mod connection;
mod context;
mod context_detail;
mod decode;
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
mod stored_event;
mod subagent;
mod subscriptions;
mod tree;
mod wire;

pub(crate) use dialect::DIALECT;

#[cfg(test)]
mod tests;
