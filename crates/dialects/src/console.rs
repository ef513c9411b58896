//! The web console: a page that is part of the program, and the small API behind it.
//!
//! The page is built from `console/` at the root of the repository; the build is in `assets/` and
//! embedded. One stream carries everything live: the summaries of all sessions, open approval requests, and the
//! events of the sessions that the page shows.

mod access;
mod app_state;
mod assets;
mod decode;
mod dialect;
mod encode;
mod family;
mod files;
mod history;
mod memory;
mod overhead;
mod prompt;
mod question;
mod routes;
mod runs;
mod senses;
mod serve;
mod sessions;
mod shape;
mod stream;
#[cfg(test)]
mod tests;
mod tool_servers;
mod usage;
mod wire;

pub(crate) use dialect::DIALECT;
pub use dialect::LISTENER;
