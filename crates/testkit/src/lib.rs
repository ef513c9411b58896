//! What tests need instead of the outside world. A dev-dependency only.

pub mod embedder;
pub mod model_server;
pub mod notes;
pub mod postgres;
pub mod replay;
pub mod scripted;
pub mod stamps;
pub mod tools;
pub mod workspaces;
