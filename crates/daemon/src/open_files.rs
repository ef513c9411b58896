//! The limit of open files.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit of open files to the hard limit. Sessions, connections and streams each need
/// some, and the usual soft limit of 1,024 is meant for programs that use `select`.
pub(crate) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "could not raise the limit of open files");
    }
}

/// The limit that a daemon gets; `None` if unlimited.
pub(crate) fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}
