//! What tests need instead of the outside world. A dev-dependency only.

pub mod clock;
pub mod fake_embedder;
pub mod manual_tool;
pub mod memory_notes;
pub mod memory_workspace;
pub mod model_server;
pub mod postgres;
pub mod replay_server;
pub mod scripted_model;
