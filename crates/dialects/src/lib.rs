//! The protocols: each a translator between its wire and the one core.
//!
//! A dialect is a folder with `wire` (its types), `decode` (wire to commands), `encode` (events to
//! wire), both pure, `serve`, which moves bytes, and `dialect`, which declares its listeners and
//! options. No dialect decides anything. To add one, write its folder and add it to the list below.

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
pub mod projection;
mod terminal;
pub mod transport;
pub mod wav;
mod windie;

use dialect::Dialect;

/// Every protocol that the daemon speaks, in the order of the ready line.
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

/// The listener of editors, and the method by which transcripts are taken over there.
pub use acp::{IMPORT, LISTENER as EDITORS};
/// The listener of the web console, for the command that opens it.
pub use console::LISTENER as WEB_CONSOLE;
/// Sessions as folders of plain files, for people and scripts.
pub use harness::Tree as SessionTree;
/// The listener of the computer-use protocol, for the commands that are its clients.
pub use windie::LISTENER as COMPUTER_USE;
/// The provider keys that users entered in a front end, as they are stored with their settings.
pub use windie::user_keys;
/// The control plane of runs, which a front end's section of the configuration sets up.
pub use windie::{RunOptions, run_options};
