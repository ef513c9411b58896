//! Builds transcription and speech, and `quintet transcribe` and `quintet say`, which use them without a
//! daemon.

pub(crate) mod wav;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use quintet_kernel::port::{
    Audio, Recognizer, SenseError, SpeechSynthesizer, Transcriber, Transcript, TranscriptionStream,
};
use quintet_kernel::speech::Sentences;
use quintet_providers::{HttpRecognizer, HttpSpeaker};
use quintet_senses::{
    LocalRecognizer, LocalSpeaker, Off, RemoteTranscriber, StreamTranscriber,
    TranscriptionProtocol, TranscriptionService,
};

use crate::cli::Flags;
use crate::options::TranscriptionSource::Utterances;
use crate::options::{self, Options, Provider, TranscriptionSource, VoiceSource};

/// Samples of a file that are sent at a time.
const PIECE_SAMPLES: usize = 16_000;

/// Transcription and speech of the options. Nothing is loaded before it is used.
#[derive(Clone)]
pub(crate) struct Voice {
    pub(crate) transcriber: Arc<dyn Transcriber>,
    pub(crate) speaker: Arc<dyn SpeechSynthesizer>,
}

/// Builds transcription and speech.
pub(crate) fn build(options: &Options) -> Voice {
    let senses = &options.senses;
    let streams = |recognizer: Arc<dyn Recognizer>| -> Arc<dyn Transcriber> {
        Arc::new(StreamTranscriber::new(senses.settings.clone(), recognizer))
    };
    let transcriber: Arc<dyn Transcriber> = match &senses.transcription {
        Utterances(VoiceSource::Off) => Arc::new(Off("transcription")),
        Utterances(VoiceSource::Local) => {
            streams(Arc::new(LocalRecognizer::new(senses.settings.clone())))
        }
        Utterances(VoiceSource::Provider { config, model }) => {
            streams(Arc::new(HttpRecognizer::new(config, model)))
        }
        TranscriptionSource::Realtime { config, model, session_model } => {
            Arc::new(RemoteTranscriber::new(realtime(config, model, session_model)))
        }
        TranscriptionSource::Nova { url } => {
            Arc::new(RemoteTranscriber::new(TranscriptionService {
                url: url.clone(),
                headers: Vec::new(),
                key: None,
                protocol: TranscriptionProtocol::Nova,
            }))
        }
    };
    let speaker: Arc<dyn SpeechSynthesizer> = match &senses.speech {
        VoiceSource::Off => Arc::new(Off("speech")),
        VoiceSource::Local => Arc::new(LocalSpeaker::new(senses.settings.clone())),
        VoiceSource::Provider { config, model } => {
            Arc::new(HttpSpeaker::new(config, model, &senses.voice))
        }
    };
    Voice { transcriber, speaker }
}

/// The realtime API of a provider.
fn realtime(config: &Provider, model: &str, session_model: &str) -> TranscriptionService {
    let base = config.base_url.trim_end_matches('/').replacen("http", "ws", 1);
    TranscriptionService {
        url: format!("{base}/realtime?model={session_model}"),
        headers: config.quirks.headers.clone(),
        key: config.api_key.as_ref().map(|key| key.reveal().to_owned()),
        protocol: TranscriptionProtocol::Realtime { model: model.into() },
    }
}

impl Voice {
    /// Logs which of them cannot be used yet.
    pub(crate) fn log_missing(&self) {
        for ready in [self.transcriber.ready(), self.speaker.ready()] {
            if let Err(missing @ SenseError::MissingWeights(sense)) = ready {
                tracing::info!(sense, "{missing}");
            }
        }
    }
}

/// `quintet transcribe`: transcribes a file, one line per utterance.
pub(crate) fn transcribe(flags: &Flags, file: &Path) -> Result<()> {
    let voice = build(&options::read(flags)?);
    let audio = wav::read(file).with_context(|| format!("{}", file.display()))?;
    run(async {
        let stream = voice.transcriber.open()?;
        tokio::try_join!(push(&*stream, &audio), print(&*stream)).map(|((), ())| ())
    })
}

async fn push(stream: &dyn TranscriptionStream, audio: &Audio) -> Result<()> {
    for piece in audio.samples.chunks(PIECE_SAMPLES) {
        stream.push(Audio { samples: piece.to_vec(), rate: audio.rate }).await?;
    }
    stream.finish().await;
    Ok(())
}

async fn print(stream: &dyn TranscriptionStream) -> Result<()> {
    while let Some(transcript) = stream.next().await {
        match transcript? {
            Transcript::Final(text) => writeln!(std::io::stdout(), "{text}")?,
            Transcript::Partial(_) | Transcript::UtteranceEnd => {}
        }
    }
    Ok(())
}

/// `quintet say`: speaks a text into a WAV file.
pub(crate) fn say(flags: &Flags, text: &str, out: &Path) -> Result<()> {
    let voice = build(&options::read(flags)?);
    voice.speaker.ready()?;
    let mut sentences = Sentences::default();
    let mut all = sentences.push(text);
    all.extend(sentences.finish());
    let audio = run(async {
        let mut spoken = Audio { samples: Vec::new(), rate: 24_000 };
        for sentence in all {
            let Audio { samples, rate } = voice.speaker.speak(sentence).await?;
            spoken.samples.extend(samples);
            spoken.rate = rate;
        }
        Ok(spoken)
    })?;
    anyhow::ensure!(!audio.samples.is_empty(), "there is nothing in the text that can be spoken");
    wav::write(out, &audio).with_context(|| format!("{}", out.display()))
}

fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
