//! What the runtime promises, checked with a scripted model, puppet tools and a store in memory.

#![expect(clippy::unwrap_used, reason = "this is all test code, also outside of #[test] functions")]

mod cancel;
mod closing;
mod crash;
mod crowd;
mod cuts;
mod durable;
mod erasing;
mod faults;
mod folding;
mod follow;
mod forking;
mod gate;
mod hibernate;
mod measure;
mod nodes;
mod panics;
mod positions;
mod recovery;
mod rehearsing;
mod runs;
mod saving;
mod storage;
mod subagents;
mod waking;
mod watcher;
mod workspace;
mod world;
