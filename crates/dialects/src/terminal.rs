//! The terminal front end: JSON-RPC over a private socket. `docs/protocols/terminal.md` is its text.

mod blocks;
mod context;
mod rate;
mod redact;
mod suggest;
