//! The MCP server: sessions as tools for other agents, over HTTP and on stdio.
//!
//! A tool call starts or continues a turn and answers with a handle soon, whatever the turn does: its
//! state, its text so far, a cursor to go on from, and the questions that wait for a person. Transcripts
//! are resources.

mod decode;
mod dialect;
mod encode;
mod serve;
mod sessions;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use dialect::DIALECT;
