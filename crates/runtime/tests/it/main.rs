//! Integration tests of the runtime with a scripted model, scripted tools and a store in memory.

#![expect(clippy::unwrap_used, reason = "only test code")]

mod cancel;
mod compaction;
mod costs;
mod crash;
mod deletion;
mod dry_runs;
mod durability;
mod faults;
mod follow;
mod forks;
mod gated_store;
mod hibernation;
mod interrupted_calls;
mod many_sessions;
mod memory;
mod nodes;
mod overhead;
mod panics;
mod positions;
mod recovery;
mod runs;
mod shutdown;
mod storage;
mod subagents;
mod wake;
mod watcher;
mod workspace;
mod world;
