//! Returns free memory to the operating system.
//!
//! Two kinds of memory stay with the process although it does not need them: memory that threads freed, which the C
//! library keeps for later allocations (more than a hundred megabytes after a model was unloaded), and pages of the
//! program's file that only its start needed.

/// Maximum free memory that a thread's heap keeps, in bytes.
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

/// Releases the pages of the program's own file, which are read again when they are needed, mostly
/// from the system's cache. Does nothing on systems other than Linux.
#[allow(unsafe_code)]
pub fn release_program_pages() {
    #[cfg(target_os = "linux")]
    for (start, len) in mappings::unchanged() {
        // SAFETY: the range is a private mapping of the program's file that cannot be written, and none of
        // its pages is a copy. So whatever is read there next is what was read before, from the file.
        unsafe {
            libc::madvise(start as *mut libc::c_void, len, libc::MADV_DONTNEED);
        }
    }
}

#[cfg(target_os = "linux")]
mod mappings;
