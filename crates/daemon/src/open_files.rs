//! The limit of open files.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Allows as many open files as the system lets this process have. Sessions, connections and streams
/// each take some, and the usual soft limit of 1,024 is there for programs that use `select`.
pub(crate) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}

/// The limit that a daemon gets; `None` if there is none.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}
