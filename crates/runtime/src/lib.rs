//! Keeps sessions alive: one task for each that has something to do, everything else on disk.
//!
//! The runtime decides nothing. It takes commands, has the kernel decide, appends what was decided,
//! tells followers, carries out what [`quintet_kernel::session::next`] asks for and feeds the outcome
//! back. After a crash the same path is walked from the journal.

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
