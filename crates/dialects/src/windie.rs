//! The computer-use protocol: the daemon calls models, a client controls the user's machine. See
//! `docs/protocols/windie.md`.

mod agent;
mod artifacts;
mod auth;
mod call_ids;
mod conversation;
mod decode;
mod dialect;
mod encode;
mod fields;
mod http;
mod ocr_rows;
mod serve;
pub mod user_keys;
mod wire;
mod ws;

pub(crate) use dialect::DIALECT;
pub use dialect::{LISTENER, RunOptions, run_options};

#[cfg(test)]
mod tests;
