//! The computer-use protocol: a person's machine acts, the daemon thinks.
//! `docs/protocols/windie.md` is its text.

mod http;
mod identity;
mod serve;

pub use serve::{Ports, Registration, Settings, router};
