//! The tools that the daemon itself runs, and the supervisor under which every command runs.
//!
//! A tool is one file in `tool/` and one line in `toolbox.rs`. A tool gets its call and its context, never the
//! session or the model, and its arguments only after they were checked against its schema (`validated.rs`).
//!
//! ```text
//! call ─► validated ─► tool/* ─┬─► confined_fs      files, opened beneath the workspace by the kernel
//!                              ├─► run ─► supervisor ─► sandbox ─► command
//!                              ├─► repository_map, search_matches, walk
//!                              └─► fetch, search_engine, mcp
//! approval ◄─ risk, subject, change            undo ◄─ changes to files
//! ```
//!
//! Commands run under the [`supervisor`], so that no process outlives its call, and in the [`sandbox`], which
//! limits their access. A [`diagram`] is drawn in a process without any access. `undo` records the changes of
//! calls to files. `workspaces` and `survey` collect what a model is told about a workspace.

mod agents;
mod blocking;
mod buffers;
mod change;
mod confined_fs;
pub mod diagram;
mod diff;
mod directory_listing;
mod fetch;
mod git;
mod glob;
mod input;
mod lines;
mod makefile;
pub mod mcp;
mod memory_settings;
mod patch;
mod repository;
mod repository_map;
mod risk;
mod run;
pub mod sandbox;
mod schema;
mod search_engine;
mod search_matches;
mod show;
mod subject;
pub mod supervisor;
mod survey;
mod tokens;
mod tool;
mod toolbox;
mod undo;
mod utf8;
mod validated;
mod walk;
mod workspaces;

pub use fetch::FetchPolicy;
pub use memory_settings::MemorySettings;
pub use search_engine::{SearchApi, SearchEngine};
pub use toolbox::{Settings, Toolbox};
