//! Whether a `make` command means anything in a workspace.

use std::io::Read;
use std::path::Path;

use crate::confined_fs;

/// The names that make looks for, in its order; it reads the first that is there.
const NAMES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// How much of a makefile is looked at.
const TARGETS_LIMIT: u64 = 1024 * 1024;

/// The target of a plain `make TARGET`.
pub(crate) fn target(command: &str) -> Option<&str> {
    match command.split_whitespace().collect::<Vec<_>>()[..] {
        ["make", target] if !target.starts_with('-') && !target.contains('=') => Some(target),
        _ => None,
    }
}

/// Whether the workspace has a makefile with this target.
pub(crate) fn has(workspace: &Path, target: &str) -> bool {
    let mut files =
        NAMES.iter().filter_map(|name| confined_fs::open(workspace, name.as_ref()).ok());
    files.next().is_some_and(|file| {
        let mut bytes = Vec::new();
        file.take(TARGETS_LIMIT).read_to_end(&mut bytes).is_ok()
            && String::from_utf8_lossy(&bytes).lines().any(|line| makes(line, target))
    })
}

/// Whether a line such as `lint test: build` makes a rule for `test`.
fn makes(line: &str, target: &str) -> bool {
    let Some((targets, rest)) = line.split_once(':') else { return false };
    let assigns = rest.trim_start_matches(':').starts_with('=');
    let is_rule = !targets.starts_with(['\t', '#']) && !targets.contains('=') && !assigns;
    is_rule && targets.split_whitespace().any(|known| known == target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_make_names_a_target() {
        assert_eq!(target("make test"), Some("test"));
        assert_eq!(target(" make  check "), Some("check"));
        for other in ["make", "make -j", "make A=1", "make a b", "cargo test", "make test && true"]
        {
            assert_eq!(target(other), None, "{other}");
        }
    }

    #[test]
    fn a_rule_for_test_is_told_from_what_looks_like_one() {
        for rule in ["test:", "test: build", "test :", "lint test: x", "test:: x", "  test:"] {
            assert!(makes(rule, "test"), "{rule:?}");
        }
        let others = [
            "",
            "test",
            "tests:",
            "test-all:",
            ".PHONY: test",
            "test := x",
            "test ::= x",
            "test = a:b",
            "test ?= a:b",
            "\ttest: x",
            "# test: x",
            "all: test",
        ];
        for other in others {
            assert!(!makes(other, "test"), "{other:?}");
        }
    }
}
