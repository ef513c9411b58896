//! Attachments in a request.

use std::fmt;

use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{Failure, PromptPart};
use serde::{Serialize, Serializer};

use crate::inputs;

/// A piece of a user message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text { text: Written<'a> },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    url: Written<'a>,
}

#[derive(Serialize)]
pub(super) struct InputAudio<'a> {
    data: Written<'a>,
    format: &'static str,
}

#[derive(Serialize)]
pub(super) struct File<'a> {
    filename: &'a str,
    file_data: Written<'a>,
}

/// A string that is put together only while it is being written, for attachments are large.
pub(super) enum Written<'a> {
    Plain(&'a str),
    TextFile { name: &'a str, content: &'a [u8] },
    Base64(&'a [u8]),
    DataUrl { mime: &'a str, content: &'a [u8] },
}

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(text) => f.write_str(text),
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

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(text) => serializer.serialize_str(text),
            Self::TextFile { .. } | Self::Base64(_) | Self::DataUrl { .. } => {
                serializer.collect_str(self)
            }
        }
    }
}

/// Writes a piece of a user message; [`inputs::check`] has seen it already.
pub(super) fn part(part: &PromptPart) -> Result<Part<'_>, Failure> {
    let (kind, name, mime, content) = match part {
        PromptPart::Text(text) => return Ok(Part::Text { text: Written::Plain(text) }),
        PromptPart::Media { kind, name, mime, blob: _, content } => (*kind, name, mime, content),
    };
    if inputs::is_text(mime) {
        return Ok(Part::Text { text: Written::TextFile { name, content } });
    }
    let data = Written::DataUrl { mime, content };
    Ok(match kind {
        MediaKind::Image => Part::ImageUrl { image_url: ImageUrl { url: data } },
        MediaKind::File => Part::File { file: File { filename: name, file_data: data } },
        MediaKind::Audio => {
            let format = audio_format(mime).ok_or_else(|| {
                inputs::unsupported(format!("audio can be wav or mp3, not {mime} ({name})"))
            })?;
            Part::InputAudio { input_audio: InputAudio { data: Written::Base64(content), format } }
        }
    })
}

fn audio_format(mime: &str) -> Option<&'static str> {
    match inputs::essence(mime).as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}
