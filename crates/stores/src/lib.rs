//! Where sessions are kept: journals, the list of them, drafts and blobs; and what front
//! ends have kept besides.
//!
//! [`DataDir`] is the way in for a daemon: it locks a directory and opens what lies in it.
//! [`memory`] keeps the same things for as long as the process lives. Nothing here decides anything
//! about a session; an append is judged by its number and its lease alone.

mod blobs;
mod data_dir;
mod drafts;
mod error;
pub mod memory;
mod no_drafts;
mod pack_blobs;
pub mod postgres;
mod single_node;
pub mod sqlite;
pub mod transfer;
mod uploads;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use blobs::FileBlobs;
pub use data_dir::DataDir;
pub use drafts::FileDrafts;
pub use error::Error;
pub use no_drafts::NoDrafts;
pub use pack_blobs::PackBlobs;
pub use single_node::SingleNode;
pub use uploads::FileUploads;

/// Locks, whether or not another thread panicked meanwhile: every change under our locks is made
/// in one step, so there is no half-made state to fear.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
