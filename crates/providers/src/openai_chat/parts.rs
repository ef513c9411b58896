//! Files in a request.

use quintet_kernel::message::MediaKind;
use quintet_kernel::model::{ImageDetail, PromptPart};
use serde::Serialize;

use crate::inputs;
use crate::media::RequestText;

/// A piece of a user message.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Part<'a> {
    Text { text: RequestText<'a> },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
pub(super) struct ImageUrl<'a> {
    url: RequestText<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'static str>,
}

#[derive(Serialize)]
pub(super) struct InputAudio<'a> {
    data: RequestText<'a>,
    format: &'static str,
}

#[derive(Serialize)]
pub(super) struct File<'a> {
    filename: &'a str,
    file_data: RequestText<'a>,
}

/// Writes a part of a user message that [`inputs::fit`] has checked.
pub(super) fn part(part: &PromptPart) -> Part<'_> {
    let (kind, name, mime, content, detail) = match part {
        PromptPart::Text(text) => return Part::Text { text: RequestText::Plain(text) },
        PromptPart::Media { kind, name, mime, blob: _, content, detail } => {
            (*kind, name, mime, content, detail.map(ImageDetail::name))
        }
    };
    if inputs::is_text(mime) {
        return Part::Text { text: RequestText::TextFile { name, content } };
    }
    let data = RequestText::DataUrl { mime, content };
    match kind {
        MediaKind::Image => Part::ImageUrl { image_url: ImageUrl { url: data, detail } },
        MediaKind::File => Part::File { file: File { filename: name, file_data: data } },
        MediaKind::Audio => {
            let format = audio_format(mime).unwrap_or("wav");
            Part::InputAudio {
                input_audio: InputAudio { data: RequestText::Base64(content), format },
            }
        }
    }
}

/// The API's name for an audio type, if it can be sent.
pub(super) fn audio_format(mime: &str) -> Option<&'static str> {
    match inputs::essence(mime).as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}
