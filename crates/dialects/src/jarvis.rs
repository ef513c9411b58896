//! The desktop assistant: the desktop talks and acts, the daemon thinks and remembers.
//! `docs/protocols/jarvis.md` is its text.

mod askers;
mod chat;
mod decode;
mod encode;
mod openapi;
mod reply;
mod serve;
mod sessions;
mod stream;
mod strict;
mod tools;
mod wire;

pub use serve::{Ports, Settings, refuse, router};
pub use tools::{FRONT_END, Risk, default_tools, risk};

#[cfg(test)]
mod tests;
