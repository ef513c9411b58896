//! What several dialects need to move bytes.

pub mod body;
pub mod guard;
pub mod query;
pub mod sse;
pub mod uds;
