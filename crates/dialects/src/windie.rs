//! The computer-use protocol: a person's machine acts, the daemon thinks.
//! `docs/protocols/windie.md` is its text.

mod artifacts;
mod http;
mod identity;
mod openapi;
mod serve;
mod transcription;

pub use artifacts::sweep;
pub use serve::{Ports, Registration, Settings, router};
