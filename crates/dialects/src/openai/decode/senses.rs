//! Decodes requests for embeddings and speech.

use serde_json::Value;

use crate::openai::reply::Reply;
use crate::openai::wire::fields::Fields;

/// The most texts of one request.
const BATCH_LIMIT: usize = 2048;
/// The most characters of one text.
const TEXT_LIMIT: usize = 32_768;
/// The most characters to speak.
const SPEECH_LIMIT: usize = 4096;

/// A request for embeddings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EmbeddingRequest {
    pub(crate) model: String,
    pub(crate) texts: Vec<String>,
    pub(crate) dimensions: Option<u64>,
    /// True if vectors are written as base64 of little-endian floats.
    pub(crate) base64: bool,
}

/// Decodes a request for embeddings.
pub(crate) fn embeddings(body: &Value) -> Result<EmbeddingRequest, Reply> {
    let body = Fields::body(body)?;
    let base64 = match body.text("encoding_format")? {
        None | Some("float") => false,
        Some("base64") => true,
        Some(other) => {
            let why = format!("encoding_format must be float or base64, not {other:?}");
            return Err(Reply::invalid_value("encoding_format", why));
        }
    };
    let texts = match body.get("input") {
        None => return Err(Reply::missing("input".into())),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(list)) => {
            let text = |(n, value): (usize, &Value)| match value {
                Value::String(text) => Ok(text.clone()),
                Value::Number(_) | Value::Array(_) => {
                    Err(Reply::unsupported("input", "token ids are not supported; send texts"))
                }
                other => Err(Reply::invalid_type(format!("input[{n}]"), "a string", other)),
            };
            list.iter().enumerate().map(text).collect::<Result<_, _>>()?
        }
        Some(other) => {
            return Err(Reply::invalid_type("input".into(), "a string or an array", other));
        }
    };
    if texts.is_empty() || texts.iter().any(String::is_empty) {
        return Err(Reply::invalid_value("input", "Invalid 'input': there is an empty text."));
    }
    if texts.len() > BATCH_LIMIT {
        let why = format!("there are {} texts; at most {BATCH_LIMIT} are supported", texts.len());
        return Err(Reply::invalid_value("input", why));
    }
    if texts.iter().any(|text| text.chars().count() > TEXT_LIMIT) {
        let why = format!("a text has more than {TEXT_LIMIT} characters");
        return Err(Reply::invalid_value("input", why));
    }
    let (model, dimensions) = (body.required_text("model")?.into(), body.count("dimensions")?);
    Ok(EmbeddingRequest { model, texts, dimensions, base64 })
}

/// A request for speech.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpeechRequest {
    pub(crate) text: String,
    pub(crate) format: AudioFormat,
}

/// The format of audio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AudioFormat {
    Wav,
    /// 16-bit little-endian samples without a header.
    Pcm,
}

/// Decodes a request for speech.
pub(crate) fn speech(body: &Value) -> Result<SpeechRequest, Reply> {
    let body = Fields::body(body)?;
    let text = body.required_text("input")?;
    if text.trim().is_empty() {
        return Err(Reply::invalid_value("input", "Invalid 'input': there is nothing to speak."));
    }
    if text.chars().count() > SPEECH_LIMIT {
        let why = format!("Invalid 'input': at most {SPEECH_LIMIT} characters are spoken.");
        return Err(Reply::invalid_value("input", why));
    }
    let format = match body.text("response_format")? {
        None | Some("wav") => AudioFormat::Wav,
        Some("pcm") => AudioFormat::Pcm,
        Some(other) => {
            let why = format!("response_format must be wav or pcm, not {other:?}");
            return Err(Reply::unsupported("response_format", why));
        }
    };
    Ok(SpeechRequest { text: text.into(), format })
}
