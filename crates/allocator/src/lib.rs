//! Returns free memory to the operating system.
//!
//! The C library keeps what threads freed for later allocations, which after a model was unloaded are
//! more than a hundred megabytes.

/// Free memory that a thread's heap may keep at its end, in bytes.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_LIMIT: libc::c_int = 4 << 20;

/// Bounds the free memory that the heap of each thread keeps; larger blocks are returned when they are
/// freed. Without this call glibc raises its bounds with every large block that is freed. Must be called
/// before the program starts threads. Does nothing with other C libraries.
#[allow(unsafe_code)]
pub fn bound_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the function takes numbers and changes settings of the allocator; no other thread runs
    // that could read them meanwhile.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, KEPT_LIMIT);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_LIMIT);
    }
}

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
