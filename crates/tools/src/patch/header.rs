//! The lines of a unified diff that are about a file rather than its content.

use std::path::PathBuf;

/// The name for a missing file.
pub(super) const NOWHERE: &str = "/dev/null";

/// The range of `@@ -10,3 +12,4 @@`: the first old line, and how many old and new lines follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HunkRange {
    /// Counted from 0; where nothing is old, the line before which the new ones come.
    pub(super) start: usize,
    pub(super) old: usize,
    pub(super) new: usize,
}

/// Reads a range; `None` if the line has none, as some models write it.
pub(super) fn range(line: &str) -> Option<HunkRange> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let ((start, old), (_, new)) = (pair(old)?, pair(new)?);
    // Git counts lines from 1, and names the previous line for an empty range.
    let start = if old == 0 { start } else { start.saturating_sub(1) };
    Some(HunkRange { start, old, new })
}

fn pair(text: &str) -> Option<(usize, usize)> {
    match text.trim().split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.trim().parse().ok()?, 1)),
    }
}

/// The name in the rest of a `---` or `+++` line, without its date.
pub(super) fn name(rest: &str) -> String {
    let rest = rest.trim_end_matches('\r');
    if rest.starts_with('"') {
        return unquoted(rest);
    }
    rest.split('\t').next().unwrap_or(rest).trim_end().to_owned()
}

/// Both names without the `a/` and `b/` that git puts before them.
pub(super) fn stripped(old: &str, new: &str) -> (Option<PathBuf>, Option<PathBuf>) {
    let is = |name: &str, prefix: &str| name == NOWHERE || name.starts_with(prefix);
    let prefixed = is(old, "a/") && is(new, "b/");
    let path = |name: &str| {
        let bare = if prefixed { name.get(2..).unwrap_or_default() } else { name };
        (name != NOWHERE).then(|| PathBuf::from(bare))
    };
    (path(old), path(new))
}

/// The names in `diff --git a/x b/x`, if they are the same; others come in lines of their own.
pub(super) fn git_names(rest: &str) -> Option<(String, String)> {
    let rest = rest.trim_end_matches('\r');
    if let Some(inner) = rest.strip_prefix('"') {
        let end = inner.find("\" ")? + 2;
        return Some((unquoted(&rest[..end]), name(rest[end..].trim_start())));
    }
    let middle = rest.len() / 2;
    let (old, new) = (rest.get(..middle)?, rest.get(middle..)?.strip_prefix(' ')?);
    (old.get(2..) == new.get(2..)).then(|| (old.to_owned(), new.to_owned()))
}

/// The permissions in `100755`.
pub(super) fn mode(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim(), 8).ok().map(|mode| mode & 0o777)
}

/// A name that git put in quotes because of what is in it.
pub(super) fn unquoted(text: &str) -> String {
    let inner = text.trim_start_matches('"');
    let inner = inner.rfind('"').map_or(inner, |end| &inner[..end]);
    let (mut bytes, mut rest) = (Vec::new(), inner.bytes().peekable());
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(digit @ b'0'..=b'3') => {
                let mut value = digit - b'0';
                for _ in 0..2 {
                    if let Some(next) = rest.next_if(|next| (b'0'..=b'7').contains(next)) {
                        value = value.wrapping_mul(8).wrapping_add(next - b'0');
                    }
                }
                bytes.push(value);
            }
            Some(other) => bytes.push(other),
            None => (),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
