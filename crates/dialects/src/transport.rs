//! What several dialects need to move bytes.

pub mod access;
pub mod body;
mod crowd;
pub mod listener;
pub mod query;
pub mod sse;
pub mod uds;
