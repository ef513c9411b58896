//! Memory as its users see it: real files, a real index.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say so and stop")]
#![expect(clippy::print_stdout, reason = "a test that is another process talks to its parent")]

mod bootstrap;
mod files;
mod found;
mod killed;
mod retention;
mod search;
mod world;
mod write;
