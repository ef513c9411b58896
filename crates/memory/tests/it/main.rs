//! Memory as its users see it: real files, a real index.

mod bootstrap;
mod files;
mod found;
mod killed;
mod retention;
mod search;
mod world;
mod write;
