//! The protocols of the daemon, each a translator between its wire format and the core.
//!
//! A dialect is a folder with `wire` (its types), `decode` (wire to commands) and `encode` (events to
//! wire), all pure; `serve`, which moves bytes; and `dialect`, which declares listeners and options
//! ([`dialect::Dialect`]). [`DIALECTS`] is the list. Dialects decide nothing: the core decides about
//! sessions and policy. Dialects share [`transport`] (listeners, access rules, SSE, Unix sockets),
//! [`jsonrpc`], [`projection`] (copies of sessions that follow the journal) and [`change_feed`].
//!
//! ```text
//! listener → access → decode → Command → Sessions ─┐
//!                                                  │ core
//! client ← transport ← encode ← Event, text ← Follow ┘
//! ```

mod acp;
mod agent;
pub mod change_feed;
mod checked_embedding;
mod console;
pub mod dialect;
pub mod editors;
mod fallback;
#[cfg(test)]
mod golden;
mod harness;
mod held_calls;
mod http_status;
mod jarvis;
pub mod jsonrpc;
mod mcp_server;
mod model_list;
mod openai;
mod overhead;
pub mod presence;
pub mod projection;
mod terminal;
pub mod transport;
pub mod wav;
mod windie;

use dialect::Dialect;

/// Every protocol of the daemon, in the order of the ready line.
pub const DIALECTS: &[Dialect] = &[
    harness::DIALECT,
    jarvis::DIALECT,
    agent::DIALECT,
    windie::DIALECT,
    terminal::DIALECT,
    console::DIALECT,
    openai::DIALECT,
    acp::DIALECT,
    mcp_server::DIALECT,
];

/// The listener of editors, and its method that imports transcripts.
pub use acp::{IMPORT, LISTENER as EDITORS};
/// The listener of the web console, for the command that opens it.
pub use console::LISTENER as WEB_CONSOLE;
/// Sessions as folders of plain files, for people and scripts.
pub use harness::Tree as SessionTree;
/// The listener of the computer-use protocol, for the commands that are its clients.
pub use windie::LISTENER as COMPUTER_USE;
/// The provider keys of users, which are stored with their settings.
pub use windie::user_keys;
/// The control plane of runs, which a front end's section of the configuration sets up.
pub use windie::{RunOptions, run_options};
