//! The stores from outside, all of them by the same rules.

#![expect(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod blobs;
mod concurrency;
mod conformance;
mod data_dir;
mod drafts;
mod durability;
mod front_ends;
mod nodes;
mod objects;
mod refusals;
mod runs;
mod script;
mod stores_under_test;
mod tls;
mod transfer;
