//! The terminal front end: JSON-RPC over a private socket. `docs/protocols/terminal.md` is its text.

mod blocks;
mod calls;
mod connection;
mod context;
mod decode;
mod encode;
mod files;
mod out;
mod outbox;
mod page;
mod query;
mod rate;
mod redact;
mod saved;
mod serve;
mod shape;
mod suggest;
mod wire;

pub use files::Folders;
pub use serve::{Ports, Settings, run};

#[cfg(test)]
mod tests;
