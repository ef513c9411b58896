//! The protocols: each a translator between its wire and the one core.
//!
//! A dialect is a folder with `wire` (its types), `decode` (wire to commands), `encode` (events to
//! wire), both pure, and `serve`, which moves bytes. No dialect decides anything.

pub mod agent;
pub mod change_feed;
#[cfg(test)]
mod golden;
pub mod harness;
mod held_calls;
pub mod jarvis;
pub mod jsonrpc;
pub mod projection;
pub mod terminal;
pub mod transport;
pub mod windie;
