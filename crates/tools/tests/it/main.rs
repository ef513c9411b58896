//! The tools as the runtime sees them, with real files and real processes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should fail")]

mod bench;
mod changes;
mod checked;
mod diagram;
mod edit_file;
mod escape;
mod fetch_url;
mod git_status;
mod look;
mod look_at_pictures;
mod memory;
mod patch;
mod prepared;
mod projects;
mod read_file;
mod recorded;
mod repo_map;
mod sandbox;
mod search;
mod server;
mod shell;
mod subject;
mod supervisor;
mod survey;
mod undo;
mod update_plan;
mod verify;
mod web_search;
mod write_file;
