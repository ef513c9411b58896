//! What a server answers to a call, as the model and people read it.

use quintet_kernel::message::{MediaKind, Part};
use quintet_kernel::port::{OutputFile, ToolOutput};
use quintet_kernel::tool::{Ending, Outcome};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, ServerResult};
use serde_json::Value;

use crate::show;

/// How many files of one result are kept.
const FILES_LIMIT: usize = 32;

/// Turns an answer into what comes of the call.
pub(super) fn output(answer: ServerResult) -> ToolOutput {
    match answer {
        ServerResult::CallToolResult(result) => of_result(result),
        ServerResult::CreateTaskResult(_) => {
            Outcome::failure("the server answered with a task, which is not supported").into()
        }
        // An answer that is not as the protocol has it is shown as it is.
        other => match serde_json::to_value(other) {
            Ok(value) => show::output(&value.to_string(), "result.json"),
            Err(error) => Outcome::failure(format!("the answer cannot be read: {error}")).into(),
        },
    }
}

fn of_result(result: CallToolResult) -> ToolOutput {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let mut gathered = ResultParts::default();
    content.into_iter().for_each(|block| gathered.add(block));
    if let Some(structured) = structured_content {
        gathered.add_structured(&structured);
    }
    gathered.output(is_error == Some(true))
}

/// The pieces of a result.
#[derive(Default)]
struct ResultParts {
    texts: Vec<String>,
    files: Vec<OutputFile>,
    media: Vec<Part>,
}

impl ResultParts {
    fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => {
                self.add_file(MediaKind::Image, &image.data, image.mime_type, None);
            }
            ContentBlock::Audio(audio) => {
                self.add_file(MediaKind::Audio, &audio.data, audio.mime_type, None);
            }
            ContentBlock::Resource(embedded) => self.add_resource(embedded.resource),
            ContentBlock::ResourceLink(link) => {
                let about = link.description.map(|text| format!(": {text}")).unwrap_or_default();
                self.texts.push(format!("[resource {} <{}>{about}]", link.name, link.uri));
            }
            other => {
                let shown = serde_json::to_string(&other).unwrap_or_default();
                self.texts.push(shown);
            }
        }
    }

    fn add_resource(&mut self, resource: ResourceContents) {
        match resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                self.texts.push(format!("[resource <{uri}>]\n{text}"));
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                self.add_file(media_kind(&mime), &blob, mime, Some(&uri));
            }
            other => self.texts.push(serde_json::to_string(&other).unwrap_or_default()),
        }
    }

    fn add_file(&mut self, kind: MediaKind, data: &str, mime: String, uri: Option<&str>) {
        let Ok(content) = decode(data) else {
            return self.texts.push(format!("[a file of type {mime} that is not valid base64]"));
        };
        if self.files.len() == FILES_LIMIT {
            return self.texts.push("[a file that is left out: there are too many]".to_owned());
        }
        let name = file_name(self.files.len() + 1, &mime, uri);
        // Models are shown pictures; of other files they are told the name.
        if kind == MediaKind::Image {
            let (name, mime) = (name.clone(), Some(mime.clone()));
            self.media.push(Part::Media { kind, name, mime });
        } else {
            self.texts.push(format!("[file {name} of type {mime}, {} bytes]", content.len()));
        }
        self.files.push(OutputFile { name, mime, content });
    }

    /// Servers repeat structured content as text for older clients; it is not said twice.
    fn add_structured(&mut self, structured: &Value) {
        let said = |text: &String| {
            serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
        };
        if !self.texts.iter().any(said) {
            self.texts.push(structured.to_string());
        }
    }

    fn output(self, is_error: bool) -> ToolOutput {
        let Self { texts, mut files, media } = self;
        let text = texts.join("\n");
        let text =
            if text.is_empty() && media.is_empty() { "(no output)".to_owned() } else { text };
        let mut output = if is_error {
            let line = text.lines().next().unwrap_or_default();
            let line = &line[..line.floor_char_boundary(200)];
            show::failure(&text, line, "result.txt")
        } else {
            show::output(&text, "result.txt")
        };
        output.outcome.parts.extend(media);
        output.files.append(&mut files);
        debug_assert!(matches!(output.outcome.ending, Ending::Succeeded | Ending::Failed));
        output
    }
}

/// How models take a file of that type.
pub(super) fn media_kind(mime: &str) -> MediaKind {
    match mime.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        _ => MediaKind::File,
    }
}

/// A plain file name.
pub(super) fn file_name(nth: usize, mime: &str, uri: Option<&str>) -> String {
    let last = uri.and_then(|uri| uri.rsplit('/').next()).unwrap_or_default();
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let last: String = last.chars().filter(|letter| plain(*letter)).take(64).collect();
    if last.starts_with(|letter: char| letter.is_ascii_alphanumeric()) {
        return format!("{nth}-{last}");
    }
    let ending = match mime {
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        "audio/mpeg" => "mp3",
        _ => mime.rsplit('/').next().unwrap_or("bin"),
    };
    let ending: String = ending.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    format!("{nth}.{}", if ending.is_empty() { "bin" } else { &ending })
}

/// Reads base64, with or without padding and line ends.
pub(super) fn decode(data: &str) -> Result<Vec<u8>, base64::DecodeError> {
    use base64::Engine as _;
    use base64::alphabet::STANDARD;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let plain: String = data.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    GeneralPurpose::new(&STANDARD, lenient).decode(plain)
}

#[cfg(test)]
mod tests;
