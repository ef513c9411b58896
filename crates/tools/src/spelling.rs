//! Paths as text, whatever bytes are in their names.
//!
//! A path that is text is written as it is. One that is not is written in quotes, with escapes, as git
//! does it. A plain name that looks like such a one is put in quotes as well, so that every text is
//! one path and every path one text.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize as _, Deserializer, Serializer};

/// A path as text.
pub(crate) fn spell(path: &Path) -> Cow<'_, str> {
    match path.to_str() {
        Some(text) if unquoted(text).is_none() => Cow::Borrowed(text),
        Some(_) | None => Cow::Owned(quote(path.as_os_str().as_bytes())),
    }
}

/// The path of a text.
pub(crate) fn path(text: &str) -> Cow<'_, Path> {
    match unquoted(text) {
        Some(bytes) => Cow::Owned(PathBuf::from(OsString::from_vec(bytes))),
        None => Cow::Borrowed(Path::new(text)),
    }
}

/// What is in the quotes, if these were needed: a text in quotes may also be a name as it is.
fn unquoted(text: &str) -> Option<Vec<u8>> {
    let bytes = unquote(text)?;
    let is_needed = std::str::from_utf8(&bytes).map_or(true, |text| unquoted(text).is_some());
    (is_needed && quote(&bytes) == text).then_some(bytes)
}

/// Bytes in quotes, as git writes them. What is text stays readable.
pub(crate) fn quote(bytes: &[u8]) -> String {
    let mut text = String::from('"');
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let _infallible = match c {
                '"' | '\\' => write!(text, "\\{c}"),
                '\n' => write!(text, "\\n"),
                '\t' => write!(text, "\\t"),
                c if c.is_ascii_control() => write!(text, "\\{:03o}", u32::from(c)),
                c => write!(text, "{c}"),
            };
        }
        for byte in chunk.invalid() {
            let _infallible = write!(text, "\\{byte:03o}");
        }
    }
    text + "\""
}

/// What was put in quotes; nothing if it was not.
fn unquote(text: &str) -> Option<Vec<u8>> {
    let mut left = text.strip_prefix('"')?.strip_suffix('"')?.bytes();
    let mut bytes = Vec::new();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'\\' => match left.next()? {
                b'n' => b'\n',
                b't' => b'\t',
                c @ (b'"' | b'\\') => c,
                c => octal([c, left.next()?, left.next()?])?,
            },
            b'"' => return None,
            byte => byte,
        });
    }
    Some(bytes)
}

fn octal(digits: [u8; 3]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 8).ok()
}

/// Writes a path as text.
pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&spell(path))
}

/// Reads a path from text.
pub(crate) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<PathBuf, D::Error> {
    let text = String::deserialize(from)?;
    Ok(path(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn every_path_is_one_text_and_back() {
        for (bytes, text) in [
            (&b"a"[..], "a"),
            (b"\xc3\xa9 b", "é b"),
            (b"\xff", r#""\377""#),
            (b"d\xc3\xa9/\xfe\n\"\\", r#""dé/\376\n\"\\""#),
            // Names as they are, which only look as if they were not.
            (b"\"q\"", r#""q""#),
            (b"\"", "\""),
            (b"\"\\n\"", r#""\n""#),
            (br#""\377""#, r#""\"\\377\"""#),
            (br#""\"\\377\"""#, r#""\"\\\"\\\\377\\\"\"""#),
            (br#""\37""#, r#""\37""#),
            (b"\\377", r"\377"),
        ] {
            let name = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(spell(name), text);
            assert_eq!(path(text), name, "{text}");
        }
    }
}
