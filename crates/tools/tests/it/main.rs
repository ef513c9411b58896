//! The tools as the runtime sees them, with real files and real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

mod bench;
mod escape;
mod read_file;
mod sandbox;
mod shell;
mod supervisor;
mod verify;
