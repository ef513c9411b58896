//! `quintet chat`: a client of the terminal protocol for people and scripts.
//!
//! [`interactive`] runs the full-screen client; [`print`](mod@print) sends one message, prints the
//! answer and exits. Both use [`Settings`] to find the daemon's socket; the crate depends on no
//! other part of the daemon.
//!
//! ```text
//! keys ─────┐
//!           ├─→ Message → model::update → Model → view::draw → terminal
//! socket → Notice ┘            └─→ Request → connection → socket (reconnects when it breaks)
//! ```

mod connection;
mod error;
mod history_file;
mod interactive;
mod model;
mod notice;
pub mod print;
mod reconnect;
mod screen;
#[cfg(test)]
mod scripted;
mod socket;
mod view;
mod wire;

use std::path::PathBuf;

pub use error::Error;
pub use interactive::interactive;

/// The settings of a conversation.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The daemon's socket; `None` for the newest that answers.
    pub socket: Option<PathBuf>,
    /// The folder in which sockets are searched.
    pub runtime: PathBuf,
    /// The user's current folder.
    pub cwd: PathBuf,
    pub shell: Option<String>,
    /// The session to continue; `None` for a new one.
    pub session: Option<String>,
    /// The model that answers; `None` for the default one.
    pub model: Option<String>,
    /// The file of the input history; `None` if it is not stored.
    pub history: Option<PathBuf>,
    pub colours: Colours,
}

/// Whether colours are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    #[default]
    On,
    /// Bold, dim and reversed text instead of colours.
    Off,
}
