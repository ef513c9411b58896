//! Checks the memory of the current folder.

use std::path::Path;

use quintet_kernel::port::Finding;

use crate::options::Options;

/// The file that should stay short, because models receive all of it.
const LONG_TERM: &str = "memory/MEMORY.md";

pub(super) fn check(options: &Options) -> Option<Finding> {
    let Some(memory) = &options.memory else {
        return Some(Finding::ok("memory", "off"));
    };
    let bytes = Path::new(LONG_TERM).metadata().ok()?.len();
    let most = memory.settings.soft_limit_bytes;
    Some(if most > 0 && bytes > most {
        Finding::warning(
            "memory",
            format!("{LONG_TERM} has {bytes} bytes, more than the {most} it should have"),
            "remove outdated entries, or raise memory.soft_limit_bytes",
        )
    } else {
        Finding::ok("memory", format!("{LONG_TERM} has {bytes} bytes"))
    })
}
