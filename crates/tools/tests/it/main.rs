//! The tools as the runtime sees them, with real files and real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

mod bench;
mod changes;
mod edit_file;
mod escape;
mod git_status;
mod look;
mod patch;
mod read_file;
mod recorded;
mod sandbox;
mod search;
mod shell;
mod subject;
mod supervisor;
mod undo;
mod verify;
mod write_file;
