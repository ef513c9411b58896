//! Requests for transcripts and speech, and their answers.

use quintet_kernel::port::{Audio, RECOGNITION_SAMPLE_RATE};
use serde_json::{Value, json};

/// The sample rate of `pcm`, which has no header.
const PCM_RATE: u32 = 24_000;
/// Separates the fields of an upload; long, because the samples of a WAV file may be any bytes.
const BOUNDARY: &str = "quintet-7d1f4a90c2e84b6f9b35e0aa61c7d2f8";
/// Characters of a reason that are shown.
const REASON_LIMIT: usize = 300;
const WAV_HEADER: usize = 44;

/// An utterance as a form.
pub(super) struct Upload {
    pub(super) body: Vec<u8>,
}

impl Upload {
    pub(super) fn new(model: &str, samples: &[f32], language: Option<&str>) -> Self {
        let mut body = Vec::with_capacity(samples.len() * 2 + 1024);
        let mut field = |name: &str, value: &str| {
            let value = value.replace(['\r', '\n'], " ");
            body.extend_from_slice(
                format!(
                    "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                )
                .as_bytes(),
            );
        };
        field("model", model);
        field("response_format", "json");
        language.into_iter().for_each(|language| field("language", language));
        body.extend_from_slice(
            format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; \
                 filename=\"speech.wav\"\r\nContent-Type: audio/wav\r\n\r\n"
            )
            .as_bytes(),
        );
        body.extend(wav(samples));
        body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
        Self { body }
    }

    pub(super) fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={BOUNDARY}")
    }
}

/// A WAV file with samples of 16 bits.
fn wav(samples: &[f32]) -> Vec<u8> {
    let size = samples.len() as u32 * 2;
    let mut file = Vec::with_capacity(WAV_HEADER + samples.len() * 2);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(size + WAV_HEADER as u32 - 8).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16u32.to_le_bytes());
    for number in [1u16, 1] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(&RECOGNITION_SAMPLE_RATE.to_le_bytes());
    file.extend_from_slice(&(RECOGNITION_SAMPLE_RATE * 2).to_le_bytes());
    for number in [2u16, 16] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(b"data");
    file.extend_from_slice(&size.to_le_bytes());
    for sample in samples {
        let sample = (sample.clamp(-1.0, 1.0) * 32_767.0) as i16;
        file.extend_from_slice(&sample.to_le_bytes());
    }
    file
}

pub(super) fn transcript(answer: &[u8]) -> Result<String, String> {
    let answer: Option<Value> = serde_json::from_slice(answer).ok();
    let text = answer.as_ref().and_then(|answer| answer["text"].as_str());
    text.map(|text| text.trim().to_owned()).ok_or_else(|| "the voice service sent no text".into())
}

pub(super) fn speech_request(model: &str, voice: &str, sentence: &str) -> Vec<u8> {
    let body = json!({
        "model": model,
        "voice": voice,
        "input": sentence,
        "response_format": "pcm",
    });
    body.to_string().into_bytes()
}

/// Parses 16-bit samples, or a WAV file from a server that supports no other format.
pub(super) fn audio(answer: &[u8]) -> Result<Audio, String> {
    if !answer.starts_with(b"RIFF") {
        return Ok(Audio { samples: samples(answer), rate: PCM_RATE });
    }
    let number = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    let (mut at, mut rate) = (12, None);
    while let (Some(name), Some(size)) = (answer.get(at..at + 4), number(at + 4)) {
        let content = at + 8;
        match name {
            b"fmt " => {
                let is_plain = answer.get(content..content + 4) == Some(&[1, 0, 1, 0])
                    && answer.get(content + 14..content + 16) == Some(&[16, 0]);
                rate = number(content + 4).filter(|_| is_plain);
            }
            b"data" => {
                let rate = rate.ok_or("the voice service sent audio of an unknown kind")?;
                let rest = answer.get(content..).unwrap_or_default();
                let data = rest.get(..size as usize).unwrap_or(rest);
                return Ok(Audio { samples: samples(data), rate });
            }
            _ => {}
        }
        at = content.saturating_add(size as usize).saturating_add(size as usize % 2);
    }
    Err("the voice service sent a broken WAV file".into())
}

fn samples(bytes: &[u8]) -> Vec<i16> {
    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// The reason in an error response, if it has one.
pub(super) fn reason(answer: &[u8]) -> String {
    let answer: Option<Value> = serde_json::from_slice(answer).ok();
    let reason = answer.as_ref().and_then(|answer| answer["error"]["message"].as_str());
    let reason: Option<String> = reason.map(|reason| reason.chars().take(REASON_LIMIT).collect());
    reason.map_or_else(String::new, |reason| format!(": {reason}"))
}
