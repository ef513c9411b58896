//! The MCP server: sessions as tools for other agents, over HTTP and on stdio.
//!
//! A tool call starts or continues a turn and returns soon, while the turn continues: with the state of the
//! turn, its text so far, a cursor to continue from, and the open questions. Transcripts are resources.

mod decode;
mod dialect;
mod encode;
mod serve;
mod sessions;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use dialect::DIALECT;
