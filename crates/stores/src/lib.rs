//! Storage adapters: journals, session summaries, drafts, blobs, uploads and the data of front
//! ends.
//!
//! [`DataDir`] is the entry point of the daemon: it locks a directory and opens what is in it.
//! Nothing here interprets a session; an append is checked by its number and its lease alone.
//!
//! ```text
//!   DataDir
//!     quintet.db   sqlite::SqliteStore   Journal, SessionIndex, Leases, RunJournal, …
//!     blobs/       FileBlobs             Blobs, by SHA-256
//!     undo/        PackBlobs             Blobs, a bounded cache of file versions
//!     drafts/      FileDrafts            Drafts, text that is not in the journal yet
//!     artifacts/   FileUploads           Uploads of front ends
//! ```
//!
//! * [`sqlite::SqliteStore`]: one writer thread commits what was queued during the last commit;
//!   a few readers run next to it.
//! * [`postgres::Store`]: the same ports in a database that several daemons share; [`objects`] stores its
//!   long blobs in a folder or a bucket.
//! * [`memory::MemoryStore`]: the same ports in memory, for tests. `tests/it/conformance.rs`
//!   runs the same cases against all.
//! * [`Error`]: why a store could not be opened. Later failures are
//!   [`quintet_kernel::port::StorageError`]s.

mod blobs;
mod data_dir;
mod drafts;
mod error;
pub mod memory;
mod no_drafts;
pub mod objects;
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

/// Locks a mutex, even if another thread panicked while holding it: every change under our
/// locks is made in one step, so no partial state is visible.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
