//! `quintet chat`: a client of the terminal protocol for people and scripts.
//!
//! Everything goes over the terminal protocol; nothing here knows the daemon's insides. [`interactive`] is the
//! screen, [`print`](mod@print) answers one question and ends.

mod connection;
mod error;
mod find;
mod history;
mod interactive;
mod model;
mod notice;
pub mod print;
mod reconnect;
mod screen;
#[cfg(test)]
mod scripted;
mod view;
mod wire;

use std::path::PathBuf;

pub use error::Error;
pub use interactive::interactive;

/// What a conversation needs to know before it begins.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The daemon's socket; without one the newest that answers is taken.
    pub socket: Option<PathBuf>,
    /// Where sockets are looked for.
    pub runtime: PathBuf,
    /// Where the person is.
    pub cwd: PathBuf,
    pub shell: Option<String>,
    /// Which session to go on with.
    pub session: Option<String>,
    /// Which model is to answer, unless the one that sessions use.
    pub model: Option<String>,
    /// Where what was typed is kept, if it may be.
    pub history: Option<PathBuf>,
    pub colours: Colours,
}

/// Whether colours are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Colours {
    #[default]
    On,
    /// Bold, dim and reversed say it.
    Off,
}
