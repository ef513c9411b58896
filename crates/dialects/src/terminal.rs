//! The terminal front end: JSON-RPC over a private socket. See `docs/protocols/terminal.md`.

mod blocks;
mod calls;
mod connection;
mod context;
mod decode;
mod dialect;
mod encode;
mod files;
mod notifications;
mod query;
mod rate_limiter;
mod redact;
mod saved_session;
mod screen;
mod send_queue;
mod serve;
mod shape;
mod suggestions;
mod wire;

pub(crate) use dialect::DIALECT;

#[cfg(test)]
mod tests;
