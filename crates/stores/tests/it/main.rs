//! The stores from outside, all of them by the same rules.

#![expect(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod blobs;
mod conformance;
mod crowd;
mod data_dir;
mod drafts;
mod front_ends;
mod nodes;
mod refusals;
mod runs;
mod story;
mod subject;
mod transfer;
mod written;
