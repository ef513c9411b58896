//! The coding harness: sessions over HTTP, events over SSE. See `docs/protocols/harness.md`.

mod body;
mod decode;
mod dialect;
mod encode;
mod policy;
mod position;
mod routes;
mod serve;
mod shape;
mod stream;
mod tree;
mod wire;

pub(crate) use dialect::DIALECT;
pub use tree::Tree;

#[cfg(test)]
mod tests;
