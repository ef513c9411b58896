//! Runs sessions: one task per session that has work; all other sessions stay on disk.
//!
//! The runtime makes no decisions. It receives commands, lets the kernel decide, appends the
//! resulting events to the journal, publishes them to followers, starts the effects that
//! [`quintet_kernel::session::next`] names and feeds their results back as commands. After a
//! crash, recovery takes the same path from the journal.
//!
//! ```text
//!   front end --submit--> Runtime --channel--> session task (command loop)
//!       ^                                        |  decide, append
//!       |                                        v
//!       +--- Follower <--- Tail <--- publish <--- journal (durable)
//!                                                |
//!                                                v  effects
//!                              model call, tool calls, compaction, revert
//! ```
//!
//! * [`Runtime`]: implements the inbound ports of [`quintet_kernel::port`].
//! * [`RuntimeDeps`]: the adapters, rules and [`Timing`] that all sessions share.
//! * [`Archive`]: reads stored sessions without running them.
//! * [`RunService`]: assigns runs to remote workers.
//! * `session`: the task of one session. `command_loop` is its main loop, `model_call`,
//!   `tool_calls` and `effects` what it runs, `publish` what followers receive, `overhead_meter`
//!   how much time it adds, and `shutdown`, `hibernation` and `recovery` its end and restart.

mod archive;
mod backoff;
mod changes;
mod clock;
mod cluster;
mod deps;
mod dry_runs;
mod follower;
mod forks;
mod idle;
mod inspection;
mod overhead;
mod prompt_history;
mod runs;
mod runtime;
mod session;
pub mod subagents;
mod tail;

pub use archive::Archive;
pub use clock::SystemClock;
pub use cluster::Cluster;
pub use deps::{RuntimeDeps, Timing};
pub use runs::{RunService, RunSettings};
pub use runtime::Runtime;
