//! Patterns for file names, as people write them.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

/// A pattern. Without a slash it is for the last part of a path, else for all of it.
#[derive(Debug)]
pub(crate) struct Glob {
    matcher: GlobMatcher,
    whole: bool,
}

impl Glob {
    /// Reads a pattern; `field` is the argument it came in.
    pub(crate) fn parse(field: &str, pattern: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("invalid input: `{field}`: {why}");
        if pattern.is_empty() {
            return Err(wrong("the pattern is empty".to_owned()));
        }
        let trimmed = pattern.trim_start_matches("./").trim_start_matches('/');
        let glob = GlobBuilder::new(trimmed).literal_separator(true).build();
        let matcher = glob.map_err(|error| wrong(error.to_string()))?.compile_matcher();
        Ok(Self { matcher, whole: pattern.contains('/') })
    }

    /// Whether it fits a path relative to the workspace.
    pub(crate) fn fits(&self, path: &Path) -> bool {
        if self.whole {
            return self.matcher.is_match(path);
        }
        path.file_name().is_some_and(|name| self.matcher.is_match(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_makes_it_a_pattern_for_the_whole_path() {
        let cases = [
            ("*.rs", "a.rs", true),
            ("*.rs", "src/deep/a.rs", true),
            ("*.rs", "a.rs.bak", false),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**/*.rs", "src/a.rs", true),
            ("**/*.{rs,toml}", "x/Cargo.toml", true),
            ("./a.rs", "a.rs", true),
            ("/a.rs", "src/a.rs", false),
        ];
        for (pattern, path, expected) in cases {
            let glob = Glob::parse("glob", pattern).expect("it is a pattern");
            assert_eq!(glob.fits(Path::new(path)), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn a_wrong_pattern_names_its_argument() {
        for pattern in ["", "[", "{a"] {
            let error = Glob::parse("glob", pattern).expect_err("it is wrong");
            assert!(error.starts_with("invalid input: `glob`: "), "{error}");
        }
    }
}
