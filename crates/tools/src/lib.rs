//! The tools that the daemon itself runs, and the supervisor under which every command runs.
//!
//! A tool is one file in `tool/` and one line in `toolbox.rs`. A tool sees its call and its desk,
//! never the session or the model, and its arguments only once they fit its schema (`checked.rs`).
//! Files are opened beneath the workspace by the kernel (`beneath.rs`); commands run under the
//! [`supervisor`], so that nothing outlives its call, and in the [`sandbox`], so that they touch
//! only what is theirs. A [`diagram`] is drawn in a process that may touch nothing.

mod agents;
mod beneath;
mod blocking;
mod buffers;
mod change;
mod checked;
pub mod diagram;
mod engine;
mod fetch;
mod folders;
mod git;
mod glob;
mod hits;
mod input;
mod lines;
mod makefile;
mod map;
pub mod mcp;
mod outline;
mod patch;
mod recall;
mod repository;
mod risk;
mod run;
pub mod sandbox;
mod schema;
mod show;
mod subject;
pub mod supervisor;
mod survey;
mod tokens;
mod tool;
mod toolbox;
mod undo;
mod utf8;
mod walk;

pub use engine::{Api as SearchApi, Engine};
pub use fetch::Reach;
pub use recall::Recall;
pub use toolbox::{Settings, Toolbox};
