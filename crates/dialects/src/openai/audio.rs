//! Audio: transcription and speech.

use axum::body::Body;
use axum::extract::multipart::MultipartError;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart, Request};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use quintet_kernel::port::{
    Audio, SpeechSynthesizer, Transcriber, Transcript, TranscriptionStream,
};
use quintet_kernel::speech::Sentences;
use serde_json::json;

use super::decode::senses::{AudioFormat, SpeechRequest};
use super::reply::Reply;
use super::serve::{body, ok};
use crate::wav;

/// The largest audio file.
const AUDIO_LIMIT: usize = 25 << 20;
/// Samples that are passed on at a time.
const CHUNK_SAMPLES: usize = 16_000;

/// `POST /v1/audio/transcriptions`.
pub(super) async fn transcribe(
    transcriber: &dyn Transcriber,
    request: Request,
) -> Result<Response, Reply> {
    let form = Form::read(request).await?;
    let audio = form.file.ok_or_else(|| Reply::missing("file".into()))?;
    let format = match form.format.as_deref() {
        None | Some("json") => TextFormat::Json,
        Some("text") => TextFormat::Text,
        Some("verbose_json") => TextFormat::Verbose,
        Some(other) => {
            let why = format!("response_format must be json, text or verbose_json, not {other:?}");
            return Err(Reply::unsupported("response_format", why));
        }
    };
    let audio = wav::parse(&audio).map_err(|error| {
        let why =
            format!("the file cannot be read: {error}; only WAV with 16-bit samples is supported");
        Reply::unsupported("file", why)
    })?;
    let duration = audio.samples.len() as f64 / f64::from(audio.rate.max(1));
    let stream = transcriber.open()?;
    if let Some(language) = form.language.clone() {
        stream.set_language(language).await;
    }
    // A stream whose audio is refused never ends, so the reader must stop, too.
    let ((), utterances) = tokio::try_join!(push(&*stream, &audio), utterances(&*stream))?;
    let text = utterances.join(" ");
    Ok(match format {
        TextFormat::Json => ok(&json!({ "text": text })),
        TextFormat::Text => plain(format!("{text}\n").into(), "text/plain; charset=utf-8"),
        TextFormat::Verbose => ok(&json!({
            "task": "transcribe",
            "language": form.language.unwrap_or_else(|| "en".into()),
            "duration": duration,
            "text": text,
        })),
    })
}

/// The format of a transcript.
enum TextFormat {
    Json,
    Text,
    Verbose,
}

async fn push(stream: &dyn TranscriptionStream, audio: &Audio) -> Result<(), Reply> {
    for piece in audio.samples.chunks(CHUNK_SAMPLES) {
        stream.push(Audio { samples: piece.to_vec(), rate: audio.rate }).await?;
    }
    stream.finish().await;
    Ok(())
}

async fn utterances(stream: &dyn TranscriptionStream) -> Result<Vec<String>, Reply> {
    let mut utterances = Vec::new();
    while let Some(transcript) = stream.next().await {
        match transcript? {
            Transcript::Final(text) => utterances.push(text),
            Transcript::Partial(_) | Transcript::UtteranceEnd => {}
        }
    }
    Ok(utterances)
}

/// The fields of a form.
#[derive(Default)]
struct Form {
    file: Option<Vec<u8>>,
    format: Option<String>,
    language: Option<String>,
}

impl Form {
    async fn read(request: Request) -> Result<Self, Reply> {
        let broken = |error: MultipartError| {
            Reply::invalid(format!("invalid multipart body: {}", error.body_text()))
        };
        let (head, content) = request.into_parts();
        let content = body(Request::from_parts(head.clone(), content), AUDIO_LIMIT).await?;
        let mut request = Request::from_parts(head, Body::from(content));
        DefaultBodyLimit::disable().apply(&mut request);
        let fields = Multipart::from_request(request, &()).await;
        let mut fields = fields.map_err(|error| {
            Reply::invalid(format!("the body must be multipart/form-data: {}", error.body_text()))
        })?;
        let mut form = Self::default();
        while let Some(field) = fields.next_field().await.map_err(broken)? {
            let name = field.name().unwrap_or_default().to_owned();
            match name.as_str() {
                "file" => form.file = Some(field.bytes().await.map_err(broken)?.into()),
                "response_format" => form.format = Some(field.text().await.map_err(broken)?),
                "language" => form.language = Some(field.text().await.map_err(broken)?),
                "stream" if field.text().await.map_err(broken)? == "true" => {
                    return Err(Reply::unsupported(
                        "stream",
                        "streamed transcripts are not supported",
                    ));
                }
                _ => {}
            }
        }
        Ok(form)
    }
}

/// `POST /v1/audio/speech`.
pub(super) async fn speak(
    speaker: &dyn SpeechSynthesizer,
    request: SpeechRequest,
) -> Result<Response, Reply> {
    let mut sentences = Sentences::default();
    let mut all = sentences.push(&request.text);
    all.extend(sentences.finish());
    let mut spoken = Audio { samples: Vec::new(), rate: 24_000 };
    for sentence in all {
        let Audio { samples, rate } = speaker.speak(sentence).await?;
        spoken.samples.extend(samples);
        spoken.rate = rate;
    }
    if spoken.samples.is_empty() {
        let why = "the text contains nothing that can be spoken";
        return Err(Reply::invalid_value("input", why));
    }
    Ok(match request.format {
        AudioFormat::Wav => {
            let bytes =
                wav::bytes(&spoken).map_err(|error| Reply::server(500, error.to_string()))?;
            plain(bytes, "audio/wav")
        }
        AudioFormat::Pcm => {
            let bytes = spoken.samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
            plain(bytes, "audio/pcm")
        }
    })
}

fn plain(bytes: Vec<u8>, kind: &'static str) -> Response {
    let mut response = Response::new(Body::from(bytes));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
