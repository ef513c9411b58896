//! The API that scripts and SDKs speak: models as they are, and the whole agent as a model.
//! `docs/protocols/openai.md` is its text.

mod abandoned;
mod agent;
mod audio;
mod decode;
mod dialect;
mod embeddings;
mod encode;
mod models;
mod proxy;
mod reply;
mod response_id;
mod responses;
mod serve;
mod start;
mod stored;
mod wire;

pub(crate) use dialect::DIALECT;

#[cfg(test)]
mod tests;
