//! The agent core: what a session is, what may happen to it and what it wants next.
//!
//! Pure and deterministic. There is no I/O, no clock, no async runtime and no randomness here: time
//! and fresh ids arrive in a [`Stamp`], the outside world is described by the traits in [`port`].

pub mod approval_id;
pub mod change;
pub mod client;
pub mod codec;
pub mod command;
pub mod context;
pub mod dynamic_tools;
pub mod event;
pub mod follow;
pub mod id;
pub mod memory;
pub mod message;
pub mod model;
mod nesting;
pub mod pictures;
pub mod policy;
pub mod port;
pub mod prompt;
pub mod run;
pub mod session;
pub mod session_summary;
pub mod similarity;
pub mod snapshot;
pub mod speech;
pub mod stamp;
pub mod subagent;
pub mod time;
pub mod tool;
pub mod toolset;
pub mod web_search;

pub use approval_id::ApprovalId;
pub use client::ClientRef;
pub use command::Command;
pub use event::{Event, Record, Seq};
pub use follow::{Cursor, Item, ItemReader};
pub use id::{BlobId, CallId, MessageId, RunId, SessionId, StepId, TurnId};
pub use session::{Effect, Refusal, State};
pub use session_summary::{SessionSummary, Status};
pub use stamp::Stamp;
pub use time::Time;
