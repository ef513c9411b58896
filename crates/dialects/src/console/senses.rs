//! Text on pictures, speech as text, and answers that are read aloud.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::port::{
    Audio, Ocr, RecognizedText, SenseError, SpeechSynthesizer, TextBox, Transcriber, Transcript,
    TranscriptionStream,
};
use quintet_kernel::speech::Sentences;
use serde_json::{Value, json};

use super::decode::Reply;
use crate::wav;

/// The number of samples that are passed to a stream at once.
const PIECE_SAMPLES: usize = 1_600;

/// The lines of text on a picture, each with its place in pixels.
pub(super) async fn text_on(ocr: &dyn Ocr, picture: Vec<u8>) -> Result<Value, Reply> {
    let RecognizedText { width, height, lines } = ocr.read(picture).await.map_err(refusal)?;
    let line = |line: &TextBox| {
        json!({
            "text": line.text, "confidence": line.confidence,
            "x": line.x, "y": line.y, "width": line.width, "height": line.height,
        })
    };
    let lines: Vec<Value> = lines.iter().map(line).collect();
    Ok(json!({ "width": width, "height": height, "lines": lines }))
}

/// The transcript of a recording.
pub(super) async fn transcript(
    transcriber: &dyn Transcriber,
    audio: Audio,
) -> Result<Value, Reply> {
    let stream = transcriber.open().map_err(refusal)?;
    let heard = tokio::try_join!(push(&*stream, &audio), words(&*stream));
    let ((), text) = heard.map_err(refusal)?;
    Ok(json!({ "text": text }))
}

/// The audio of a sentence of an answer, and how many sentences the answer has. Code and
/// Markdown are not read; a sentence without words has no audio.
pub(super) async fn spoken(
    speaker: &dyn SpeechSynthesizer,
    text: &str,
    sentence: usize,
) -> Result<Value, Reply> {
    let mut cut = Sentences::default();
    let mut sentences = cut.push(text);
    sentences.extend(cut.finish());
    let count = sentences.len();
    let Some(sentence) = sentences.into_iter().nth(sentence) else {
        return Ok(json!({ "sentences": count, "wav": null }));
    };
    let audio = speaker.speak(sentence).await.map_err(refusal)?;
    let file = wav::bytes(&audio).map_err(|error| Reply::new(500, error.to_string()))?;
    let file = (!audio.samples.is_empty()).then(|| STANDARD.encode(file));
    Ok(json!({ "sentences": count, "wav": file }))
}

async fn push(stream: &dyn TranscriptionStream, audio: &Audio) -> Result<(), SenseError> {
    for piece in audio.samples.chunks(PIECE_SAMPLES) {
        stream.push(Audio { samples: piece.to_vec(), rate: audio.rate }).await?;
    }
    stream.finish().await;
    Ok(())
}

async fn words(stream: &dyn TranscriptionStream) -> Result<String, SenseError> {
    let mut utterances = Vec::new();
    while let Some(transcript) = stream.next().await {
        match transcript? {
            Transcript::Final(text) if !text.trim().is_empty() => {
                utterances.push(text.trim().to_owned());
            }
            Transcript::Final(_) | Transcript::Partial(_) | Transcript::UtteranceEnd => {}
        }
    }
    Ok(utterances.join(" "))
}

fn refusal(error: SenseError) -> Reply {
    let status = match &error {
        SenseError::Off(_) | SenseError::MissingWeights(_) | SenseError::Busy => 503,
        SenseError::BadInput(_) => 422,
        SenseError::Failed(_) => 502,
    };
    Reply::new(status, error.to_string())
}
