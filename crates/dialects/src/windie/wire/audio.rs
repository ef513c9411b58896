//! Audio on the wire: frames of samples from clients, and chunks to them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::port::{Audio, Transcript};
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes before the metadata, which give its length.
const LENGTH_BYTES: usize = 4;
/// The default sample rate of a frame.
const DEFAULT_RATE: u32 = 16_000;
/// Samples of an audio chunk: a second of speech at 24 kHz.
const CHUNK_SAMPLES: usize = 24_000;

/// A message of text on the transcription socket.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Control {
    /// The languages that are spoken and written.
    SetLangs {
        /// The language that is spoken.
        #[serde(default)]
        source_language: Option<String>,
    },
    /// Discards the audio so far.
    StartOver,
}

/// Reads a frame of audio: a length, as much metadata, and samples of 16 bits.
pub(crate) fn frame(bytes: &[u8]) -> Result<Audio, &'static str> {
    let (length, rest) = bytes.split_at_checked(LENGTH_BYTES).ok_or("shorter than 4 bytes")?;
    let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let (metadata, samples) = rest.split_at_checked(length).ok_or("its metadata is cut off")?;
    let metadata: Value =
        serde_json::from_slice(metadata).map_err(|_| "its metadata is no JSON")?;
    let metadata = metadata.as_object().ok_or("its metadata is no object")?;
    let rate = match metadata.get("sampleRate") {
        None | Some(Value::Null) => DEFAULT_RATE,
        Some(rate) => rate_of(rate).ok_or("its sample rate is no proper number")?,
    };
    if samples.len() % 2 == 1 {
        return Err("it ends within a sample");
    }
    let samples = samples.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
    Ok(Audio { samples: samples.collect(), rate })
}

fn rate_of(value: &Value) -> Option<u32> {
    let whole = value.as_f64().filter(|rate| rate.fract() == 0.0 && *rate >= 1.0);
    whole.filter(|rate| *rate <= f64::from(u32::MAX)).map(|rate| rate as u32)
}

/// The message for a transcript.
pub(crate) fn transcript(transcript: &Transcript) -> Value {
    match transcript {
        Transcript::Partial(text) => realtime(text, false),
        Transcript::Final(text) => realtime(text, true),
        Transcript::UtteranceEnd => json!({ "type": "utterance_end" }),
    }
}

fn realtime(text: &str, is_final: bool) -> Value {
    json!({ "type": "realtime", "text": text, "is_final": is_final })
}

/// The payloads of the messages that carry audio.
pub(crate) fn chunks(audio: &Audio) -> impl Iterator<Item = Value> {
    let rate = audio.rate;
    audio.samples.chunks(CHUNK_SAMPLES).map(move |samples| {
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        json!({ "audio": STANDARD.encode(bytes), "sample_rate": rate })
    })
}

#[cfg(test)]
mod tests;
