//! The computer-use protocol: a person's machine acts, the daemon thinks.
//! `docs/protocols/windie.md` is its text.

mod acknowledged;
mod artifacts;
mod catalogue;
mod connection;
mod conversation;
mod decode;
mod definition;
mod dialect;
mod encode;
mod fields;
mod handover;
mod history;
mod http;
mod identity;
mod instructions;
mod line;
mod manifest;
mod models;
mod offer;
mod openapi;
mod patience;
mod plan;
mod query;
mod rehearsal;
mod rehydrate;
mod requests;
mod results;
mod schema;
mod serve;
mod settings;
mod stops;
mod tokens;
mod transcription;
mod transparency;
mod trouble;
mod turns;
pub mod user_keys;
mod wire;

pub(crate) use dialect::DIALECT;

#[cfg(test)]
mod tests;
