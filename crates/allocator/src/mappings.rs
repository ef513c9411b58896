//! The memory mappings of the program's file, from `/proc`.

use std::fs;
use std::path::Path;

/// The start and the length of each mapping of the program's file that cannot be written and of which the
/// process has no changed copies. Empty if that is unknown.
pub(crate) fn unchanged() -> Vec<(usize, usize)> {
    let program = fs::read_link("/proc/self/exe");
    let mappings = fs::read_to_string("/proc/self/smaps");
    match (program, mappings) {
        (Ok(program), Ok(mappings)) => unchanged_in(&mappings, &program),
        (Ok(_) | Err(_), _) => Vec::new(),
    }
}

fn unchanged_in(mappings: &str, program: &Path) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut current = None;
    for line in mappings.lines() {
        if let Some(mapping) = Mapping::parse(line) {
            current = Some(mapping);
        } else if let Some(copies) = line.strip_prefix("Anonymous:")
            && let Some(mapping) = current.take()
            && copies.trim() == "0 kB"
            && mapping.is_fixed()
            && Path::new(mapping.path) == program
        {
            found.push((mapping.start, mapping.end - mapping.start));
        }
    }
    found
}

/// The first line of a mapping: `55d0-55e0 r-xp 00001000 fe:00 1234      /usr/bin/quintet`.
struct Mapping<'a> {
    start: usize,
    end: usize,
    permissions: &'a str,
    path: &'a str,
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (range, rest) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let address = |hex| usize::from_str_radix(hex, 16).ok();
        let mut fields = rest.splitn(5, ' ');
        let (permissions, path) = (fields.next()?, fields.nth(3).unwrap_or_default().trim_start());
        Some(Self { start: address(start)?, end: address(end)?, permissions, path })
    }

    /// True if it can be read and not written, by this process alone.
    fn is_fixed(&self) -> bool {
        matches!(self.permissions, "r--p" | "r-xp")
    }
}

#[cfg(test)]
mod tests;
