//! The OpenAI-compatible API for scripts and SDKs: providers' models, and the whole agent as a model. See
//! `docs/protocols/openai.md`.

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
mod stored_response;
mod wire;

pub(crate) use dialect::DIALECT;

#[cfg(test)]
mod tests;
