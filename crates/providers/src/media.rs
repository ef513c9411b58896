//! Files in a request, encoded while the request is written because they are large.

use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

/// A string in a request.
pub(crate) enum RequestText<'a> {
    Plain(&'a str),
    Owned(String),
    TextFile { name: &'a str, content: &'a [u8] },
    Base64(&'a [u8]),
    DataUrl { mime: &'a str, content: &'a [u8] },
}

impl fmt::Display for RequestText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => f.write_str(text),
            Self::Owned(text) => f.write_str(text),
            Self::TextFile { name, content } => {
                let content = String::from_utf8_lossy(content);
                write!(f, "<file name={name:?}>\n{content}\n</file>")
            }
            Self::Base64(content) => Base64Display::new(content, &STANDARD).fmt(f),
            Self::DataUrl { mime, content } => {
                write!(f, "data:{mime};base64,{}", Base64Display::new(content, &STANDARD))
            }
        }
    }
}

impl Serialize for RequestText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(text) => serializer.serialize_str(text),
            Self::Owned(text) => serializer.serialize_str(text),
            Self::TextFile { .. } | Self::Base64(_) | Self::DataUrl { .. } => {
                serializer.collect_str(self)
            }
        }
    }
}
