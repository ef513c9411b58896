//! The agent core: what a session is, how it changes and what must be done next.
//!
//! The kernel is pure and deterministic. It has no I/O, no clock, no async runtime and no
//! randomness: time and fresh ids arrive in a [`Stamp`], and the outside world is described by
//! the traits in [`port`].
//!
//! One command leads to one batch of events:
//!
//! ```text
//!             decide                evolve               next
//!   Command ---------> Vec<Event> ---------> State ---------> Vec<Effect>
//!      ^                   |                                      |
//!      |                   v                                      v
//!      |             journal, followers              model calls, tool calls
//!      +------------------- results come back as commands --------+
//! ```
//!
//! * [`command::Command`]: what clients request and what the runtime reports.
//! * [`event::Event`]: what happened; a session's journal is a numbered list of [`Record`]s.
//! * [`State`]: a session, computed from its journal alone.
//! * [`session::handle`]: decides a command, applies its events and every step that follows.
//! * [`session::next`]: the work that the runtime must have in progress for a state.
//! * [`prompt::assemble`]: the prompt of the open model call.
//! * [`policy::Rules`]: approvals, limits and verification.
//! * [`port`]: the traits that the runtime, stores, providers, tools and front ends share.

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
pub mod question;
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
pub use id::{BlobId, CallId, MessageId, QuestionId, RunId, SessionId, StepId, TurnId};
pub use session::{Effect, Refusal, State};
pub use session_summary::{SessionSummary, Status};
pub use stamp::Stamp;
pub use time::Time;
