//! The desktop assistant: the desktop talks and acts, the daemon thinks and remembers.
//! `docs/protocols/jarvis.md` is its text.

mod chat;
mod claim_priority;
mod decode;
mod dialect;
mod encode;
mod openapi;
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
