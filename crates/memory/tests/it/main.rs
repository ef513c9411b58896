//! Memory as its users see it: real files, a real index.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so and stop")]

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
