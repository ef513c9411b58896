//! Decodes the content of messages: text, pictures, sound and files, in the formats of both endpoints.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::message::MediaKind;
use quintet_kernel::model::ImageDetail;
use serde_json::Value;

use crate::openai::reply::Reply;
use crate::openai::wire::fields::Fields;

/// The longest name of a participant, in characters.
const NAME_LIMIT: usize = 64;

/// A piece of a user message.
#[derive(Clone, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Media(Media),
}

/// A file of a message.
#[derive(Clone, PartialEq)]
pub(crate) struct Media {
    pub(crate) kind: MediaKind,
    pub(crate) name: String,
    pub(crate) mime: String,
    pub(crate) content: Vec<u8>,
    /// For a picture: the requested level of detail, if any.
    pub(crate) detail: Option<ImageDetail>,
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Media(Media { name, mime, content, .. }) => {
                write!(f, "{name} ({mime}, {} bytes)", content.len())
            }
        }
    }
}

/// The parts of a user message. Fails if it is neither text nor a list of known parts.
pub(crate) fn parts(message: &Fields<'_>) -> Result<Vec<Part>, Reply> {
    match message.get("content") {
        None => Err(Reply::missing(message.param("content"))),
        Some(Value::String(text)) => Ok(vec![Part::Text(text.clone())]),
        Some(Value::Array(_)) => {
            let pieces = message.objects("content")?.unwrap_or_default();
            pieces.iter().map(part).collect()
        }
        Some(other) => {
            Err(Reply::invalid_type(message.param("content"), "a string or an array", other))
        }
    }
}

/// The parts of a message with the participant's name before them, because not every provider accepts names. Fails
/// like [`parts`], and if the name is not text.
pub(crate) fn named_parts(message: &Fields<'_>) -> Result<Vec<Part>, Reply> {
    let mut parts = parts(message)?;
    let Some(name) = name(message)? else { return Ok(parts) };
    match parts.first_mut() {
        Some(Part::Text(text)) => *text = format!("{name}: {text}"),
        Some(Part::Media(_)) | None => parts.insert(0, Part::Text(format!("{name}:"))),
    }
    Ok(parts)
}

/// Instructions, with the author's name before them. Fails like [`text`], and if the name is not text.
pub(crate) fn named_text(message: &Fields<'_>) -> Result<String, Reply> {
    let text = text(message, "content")?;
    Ok(name(message)?.map_or(text.clone(), |name| format!("{name}: {text}")))
}

fn name<'a>(message: &Fields<'a>) -> Result<Option<&'a str>, Reply> {
    let Some(name) = message.text("name")? else { return Ok(None) };
    let is_forbidden = |letter: char| letter.is_whitespace() || "<|\\/>".contains(letter);
    if name.is_empty() || name.chars().count() > NAME_LIMIT || name.contains(is_forbidden) {
        let param = message.param("name");
        let why = format!(
            "Invalid '{param}': 1 to {NAME_LIMIT} characters, without spaces, <, >, |, \\ and /."
        );
        return Err(Reply::invalid_value(param, why));
    }
    Ok(Some(name))
}

/// Text content under `name`, for models, instructions and results. Missing content is an empty text.
pub(crate) fn text(message: &Fields<'_>, name: &str) -> Result<String, Reply> {
    match message.get(name) {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(_)) => {
            let pieces = message.objects(name)?.unwrap_or_default();
            pieces.iter().map(only_text).collect()
        }
        Some(other) => Err(Reply::invalid_type(message.param(name), "a string or an array", other)),
    }
}

fn only_text(piece: &Fields<'_>) -> Result<String, Reply> {
    match piece.required_text("type")? {
        "text" | "input_text" | "output_text" => Ok(piece.required_text("text")?.into()),
        "refusal" => Ok(piece.required_text("refusal")?.into()),
        other => Err(unknown(piece, other)),
    }
}

fn part(piece: &Fields<'_>) -> Result<Part, Reply> {
    match piece.required_text("type")? {
        "text" | "input_text" | "output_text" => {
            Ok(Part::Text(piece.required_text("text")?.into()))
        }
        "image_url" => {
            let image = piece.object("image_url")?;
            let image = image.ok_or_else(|| Reply::missing(piece.param("image_url")))?;
            image_part(image.required_text("url")?, &image.param("url"), detail(&image)?)
        }
        "input_image" => {
            let param = piece.param("image_url");
            image_part(piece.required_text("image_url")?, &param, detail(piece)?)
        }
        "input_audio" => {
            let audio = piece.object("input_audio")?;
            let audio = audio.ok_or_else(|| Reply::missing(piece.param("input_audio")))?;
            let format = audio.required_text("format")?;
            let mime = match format {
                "wav" => "audio/wav",
                "mp3" => "audio/mpeg",
                other => {
                    let why = format!("format must be wav or mp3, not {other}");
                    return Err(Reply::unsupported(audio.param("format"), why));
                }
            };
            let content = base64(audio.required_text("data")?, &audio.param("data"))?;
            let (name, mime) = (format!("audio.{format}"), mime.into());
            let kind = MediaKind::Audio;
            Ok(Part::Media(Media { kind, name, mime, content, detail: None }))
        }
        "file" => {
            let file = piece.object("file")?;
            file_part(&file.ok_or_else(|| Reply::missing(piece.param("file")))?)
        }
        "input_file" => file_part(piece),
        other => Err(unknown(piece, other)),
    }
}

fn unknown(piece: &Fields<'_>, kind: &str) -> Reply {
    Reply::unsupported(piece.param("type"), format!("content of type {kind:?} is not supported"))
}

/// The level of detail of a picture.
fn detail(image: &Fields<'_>) -> Result<Option<ImageDetail>, Reply> {
    let Some(name) = image.text("detail")? else { return Ok(None) };
    let unknown = || {
        let why = format!("detail must be auto, low, high or original, not {name:?}");
        Reply::invalid_value(image.param("detail"), why)
    };
    ImageDetail::parse(name).map(Some).ok_or_else(unknown)
}

fn image_part(url: &str, param: &str, detail: Option<ImageDetail>) -> Result<Part, Reply> {
    let (mime, content) = data_url(url, param)?;
    if !mime.starts_with("image/") {
        return Err(Reply::invalid_value(param, format!("an image was expected, not {mime}")));
    }
    let name = format!("image.{}", mime.trim_start_matches("image/").replace("svg+xml", "svg"));
    Ok(Part::Media(Media { kind: MediaKind::Image, name, mime, content, detail }))
}

fn file_part(file: &Fields<'_>) -> Result<Part, Reply> {
    let param = file.param("file_data");
    let (mime, content) = data_url(file.required_text("file_data")?, &param)?;
    let name = file.text("filename")?.unwrap_or("file").to_owned();
    Ok(Part::Media(Media { kind: MediaKind::File, name, mime, content, detail: None }))
}

/// Decodes a data URL. Other URLs are not fetched, because a request must not make the daemon call other
/// servers.
fn data_url(url: &str, param: &str) -> Result<(String, Vec<u8>), Reply> {
    let unsupported = || {
        let why = "only data URLs are supported (data:image/png;base64,…)";
        Reply::unsupported(param, why)
    };
    let (head, data) = url
        .strip_prefix("data:")
        .ok_or_else(unsupported)?
        .split_once(',')
        .ok_or_else(unsupported)?;
    let mime = head.strip_suffix(";base64").ok_or_else(unsupported)?;
    let mime = mime.split(';').next().unwrap_or_default().to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/+.-".contains(c);
    if mime.is_empty() || mime.len() > 100 || !mime.chars().all(plain) {
        return Err(Reply::invalid_value(param, "the data URL has no MIME type"));
    }
    Ok((mime, base64(data, param)?))
}

fn base64(data: &str, param: &str) -> Result<Vec<u8>, Reply> {
    STANDARD.decode(data.trim()).map_err(|_| Reply::invalid_value(param, "the data is not base64"))
}
