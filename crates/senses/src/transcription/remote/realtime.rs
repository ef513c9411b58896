//! OpenAI's realtime API, used only for transcription: the service detects utterances and does not
//! answer them.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quintet_kernel::port::{Audio, SenseError, Transcript};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{Codec, failed};
use crate::resample::Resampler;
use crate::transcription::driver::Input;

/// Samples per second of the audio that the service accepts.
const RATE: u32 = 24_000;
/// The service's threshold for speech.
const THRESHOLD: f64 = 0.5;
const PADDING_MS: u64 = 300;
const SILENCE_MS: u64 = 500;

/// The state of a stream.
pub(super) struct Realtime {
    model: String,
    language: Option<String>,
    resampler: Option<Resampler>,
    /// The text of utterances so far, by the service's ids.
    texts: HashMap<String, String>,
    /// Utterances that are not transcribed yet.
    open: HashSet<String>,
    /// Utterances that the client discarded.
    ignored: HashSet<String>,
    /// True once the service has confirmed the end of the audio.
    is_committed: bool,
}

impl Realtime {
    pub(super) fn new(model: &str) -> Self {
        Self {
            model: model.into(),
            language: None,
            resampler: None,
            texts: HashMap::new(),
            open: HashSet::new(),
            ignored: HashSet::new(),
            is_committed: false,
        }
    }

    fn configuration(&self) -> Message {
        let mut transcription = json!({ "model": self.model });
        if let Some(language) = &self.language {
            transcription["language"] = language.as_str().into();
        }
        message(&json!({
            "type": "session.update",
            "session": {
                "type": "transcription",
                "audio": { "input": {
                    "format": { "type": "audio/pcm", "rate": RATE },
                    "transcription": transcription,
                    "turn_detection": {
                        "type": "server_vad",
                        "threshold": THRESHOLD,
                        "prefix_padding_ms": PADDING_MS,
                        "silence_duration_ms": SILENCE_MS,
                    },
                } },
            },
        }))
    }

    fn audio(&mut self, audio: &Audio) -> Result<Option<Message>, SenseError> {
        let mut samples = Vec::new();
        if self.resampler.as_ref().is_none_or(|resampler| resampler.from() != audio.rate) {
            let last = self.resampler.replace(Resampler::new(audio.rate, RATE)?);
            samples.extend(last.map(|mut last| last.finish()).unwrap_or_default());
        }
        let input: Vec<f32> = audio.samples.iter().map(|x| f32::from(*x) / 32_768.0).collect();
        samples.extend(self.resampler.iter_mut().flat_map(|resampler| resampler.push(&input)));
        Ok(appended(&samples))
    }

    fn finish(&mut self) -> Vec<Message> {
        // The service also confirms utterances that it detected itself; only confirmations from now
        // on count.
        self.is_committed = false;
        let rest = self.resampler.take().map(|mut last| last.finish()).unwrap_or_default();
        let commit = message(&json!({ "type": "input_audio_buffer.commit" }));
        appended(&rest).into_iter().chain([commit]).collect()
    }

    fn start_over(&mut self) -> Vec<Message> {
        self.ignored.extend(self.open.drain());
        self.texts.clear();
        self.resampler = None;
        vec![message(&json!({ "type": "input_audio_buffer.clear" }))]
    }

    /// Handles a transcribed utterance; one with a partial text gets its end even if the final text is empty.
    fn completed(&mut self, item: &str, text: &str) -> Vec<Transcript> {
        self.open.remove(item);
        let was_shown = self.texts.remove(item).is_some();
        let text = text.trim().to_owned();
        if self.ignored.remove(item) || (text.is_empty() && !was_shown) {
            return Vec::new();
        }
        vec![Transcript::Final(text), Transcript::UtteranceEnd]
    }

    fn written(&mut self, item: &str, delta: &str) -> Vec<Transcript> {
        if self.ignored.contains(item) || delta.is_empty() {
            return Vec::new();
        }
        let text = self.texts.entry(item.to_owned()).or_default();
        text.push_str(delta);
        vec![Transcript::Partial(text.trim().to_owned())]
    }
}

impl Codec for Realtime {
    fn greeting(&self) -> Vec<Message> {
        vec![self.configuration()]
    }

    fn encode(&mut self, input: Input) -> Result<Vec<Message>, SenseError> {
        Ok(match input {
            Input::Audio(audio) => self.audio(&audio)?.into_iter().collect(),
            Input::Language(language) => {
                self.language = Some(language).filter(|language| !language.is_empty());
                vec![self.configuration()]
            }
            Input::StartOver => self.start_over(),
            Input::Finish => self.finish(),
        })
    }

    fn decode(&mut self, message: &str) -> Result<Vec<Transcript>, SenseError> {
        let event: Value = serde_json::from_str(message).unwrap_or_default();
        let text = |name: &str| event[name].as_str().unwrap_or_default();
        let item = text("item_id");
        let error = &event["error"];
        let reason = error["message"].as_str().unwrap_or("the transcription service failed");
        match text("type") {
            "input_audio_buffer.committed" => {
                self.open.insert(item.to_owned());
                self.is_committed = true;
            }
            "conversation.item.input_audio_transcription.delta" => {
                return Ok(self.written(item, text("delta")));
            }
            "conversation.item.input_audio_transcription.completed" => {
                return Ok(self.completed(item, text("transcript")));
            }
            // There was nothing left to transcribe.
            "error" if error["code"] == "input_audio_buffer_commit_empty" => {
                self.is_committed = true;
            }
            "error" | "conversation.item.input_audio_transcription.failed" => {
                return Err(failed(reason));
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    fn is_finished(&self) -> bool {
        self.is_committed && self.open.is_empty()
    }
}

/// The message that adds samples; none for no samples.
fn appended(samples: &[f32]) -> Option<Message> {
    let sample = |sample: &f32| (sample.clamp(-1.0, 1.0) * 32_767.0).round() as i16;
    let bytes: Vec<u8> = samples.iter().map(sample).flat_map(i16::to_le_bytes).collect();
    let append = json!({ "type": "input_audio_buffer.append", "audio": STANDARD.encode(&bytes) });
    (!bytes.is_empty()).then(|| message(&append))
}

fn message(event: &Value) -> Message {
    Message::text(event.to_string())
}
