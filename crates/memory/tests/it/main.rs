//! Integration tests of memory with real files and a real index.

#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod bootstrap;
mod embedding;
mod files;
mod found;
mod killed;
mod messages;
mod retention;
mod search;
mod world;
mod write;
