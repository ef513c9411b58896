//! Integration tests of all stores.

#![expect(clippy::unwrap_used, reason = "only test code")]

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
