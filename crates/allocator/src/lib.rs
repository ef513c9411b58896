//! Returns free memory to the operating system.
//!
//! The C library keeps what threads freed for later allocations, which after a model was unloaded are
//! more than a hundred megabytes.

/// Returns the free pages of all threads to the operating system. Takes milliseconds, in which other
/// threads may have to wait for memory. Does nothing where the C library is not glibc.
#[allow(unsafe_code)]
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function takes a number and touches memory that is free; it may be called by any
    // thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
