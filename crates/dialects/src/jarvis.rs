//! The desktop-assistant protocol: the daemon calls models and keeps memory, the desktop runs tools. See
//! `docs/protocols/jarvis.md`.

mod chat;
mod claim_priority;
mod decode;
mod dialect;
mod encode;
mod reply;
mod serve;
mod sessions;
mod stream;
mod strict;
mod tools;
mod wire;

pub(crate) use dialect::DIALECT;

#[cfg(test)]
mod tests;
