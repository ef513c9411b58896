//! The computer-use protocol: a person's machine acts, the daemon thinks.
//! `docs/protocols/windie.md` is its text.
#![expect(dead_code, reason = "the connection is not there yet")]

mod catalogue;
mod decode;
mod definition;
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
mod patience;
mod query;
mod rehydrate;
mod results;
mod schema;
mod serve;
mod settings;
mod tokens;
mod transparency;
mod trouble;
mod wire;

pub use serve::{Ports, Registration, Settings, router};

#[cfg(test)]
mod tests;
