//! Test doubles for the outside world: models, a model server, a PostgreSQL server, tools, a clock. Used only as a
//! dev-dependency.

pub mod clock;
pub mod fake_embedder;
pub mod manual_tool;
pub mod memory_notes;
pub mod memory_workspace;
pub mod model_server;
pub mod postgres;
pub mod replay_server;
pub mod scripted_model;
