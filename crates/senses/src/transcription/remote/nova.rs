//! A Nova gateway: frames of audio with their sample rate, and messages like those of this daemon's own
//! `/ws/transcription`.

use quintet_kernel::port::{Audio, RECOGNITION_SAMPLE_RATE, SenseError, Transcript};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::{Codec, failed};
use crate::transcription::driver::Input;

/// The state of a stream.
#[derive(Default)]
pub(super) struct Nova {
    /// The sample rate of the last audio.
    rate: Option<u32>,
    /// True while an utterance has begun and not ended.
    is_open: bool,
    /// True once an utterance has ended after the audio.
    is_finished: bool,
    is_over: bool,
}

impl Codec for Nova {
    fn greeting(&self) -> Vec<Message> {
        Vec::new()
    }

    fn encode(&mut self, input: Input) -> Result<Vec<Message>, SenseError> {
        Ok(vec![match input {
            Input::Audio(audio) => {
                self.rate = Some(audio.rate);
                frame(&audio)
            }
            Input::Language(language) => Message::text(
                json!({
                    "type": "set_langs",
                    "source_language": language,
                    "target_language": language,
                })
                .to_string(),
            ),
            Input::StartOver => {
                self.is_open = false;
                Message::text(json!({ "type": "start_over" }).to_string())
            }
            // The protocol has no end message: a second of silence ends the utterance.
            Input::Finish => {
                self.is_over = true;
                let rate = self.rate.unwrap_or(RECOGNITION_SAMPLE_RATE);
                frame(&Audio { samples: vec![0; rate as usize], rate })
            }
        }])
    }

    fn decode(&mut self, message: &str) -> Result<Vec<Transcript>, SenseError> {
        let event: Value = serde_json::from_str(message).unwrap_or_default();
        let text = event["text"].as_str().unwrap_or_default().to_owned();
        Ok(match event["type"].as_str().unwrap_or_default() {
            "realtime" => {
                self.is_open = true;
                let is_final = event["is_final"].as_bool().unwrap_or(false);
                vec![if is_final { Transcript::Final(text) } else { Transcript::Partial(text) }]
            }
            "utterance_end" => {
                self.is_open = false;
                self.is_finished = self.is_over;
                vec![Transcript::UtteranceEnd]
            }
            "error" => {
                let reason = event["message"].as_str();
                return Err(failed(reason.unwrap_or("the transcription service failed")));
            }
            _ => Vec::new(),
        })
    }

    fn is_finished(&self) -> bool {
        self.is_finished && !self.is_open
    }
}

/// The length of the metadata, the metadata, and samples of 16 bits.
fn frame(audio: &Audio) -> Message {
    let metadata = json!({ "sampleRate": audio.rate }).to_string();
    let length = (metadata.len() as u32).to_le_bytes();
    let samples = audio.samples.iter().flat_map(|sample| sample.to_le_bytes());
    Message::binary(
        length.into_iter().chain(metadata.into_bytes()).chain(samples).collect::<Vec<u8>>(),
    )
}
