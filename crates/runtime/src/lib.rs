//! Keeps sessions alive: one task for each that has something to do, everything else on disk.
//!
//! The runtime decides nothing. It takes commands, has the kernel decide, appends what was decided,
//! tells followers, carries out what [`quintet_kernel::session::next`] asks for and feeds the outcome
//! back. After a crash the same path is walked from the journal.

mod archive;
mod backoff;
mod branches;
mod changes;
mod cluster;
mod follower;
mod idle;
mod load;
mod parts;
mod prompts;
mod rehearsals;
mod runs;
mod runtime;
mod session;
mod stamps;
pub mod subagents;
mod tail;

pub use archive::Archive;
pub use cluster::Cluster;
pub use parts::{Pace, Parts};
pub use runs::{RunService, RunSettings};
pub use runtime::Runtime;
pub use stamps::SystemStamps;
