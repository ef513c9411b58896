//! `quintet listen`: wake word, transcription, query and spoken answer, without a desktop app.
//!
//! A client of the computer-use protocol. The wake word is detected here; the daemon does the rest.
//!
//! ```text
//! microphone or file → wake word → /ws/transcription → query on /ws → audio chunks → loudspeaker or file
//! ```

mod client;
mod sound;
mod source;

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use quintet_dialects::COMPUTER_USE;
use quintet_kernel::port::Audio;
use quintet_senses::{Settings, WakeWord};
use serde_json::{Value, json};

use crate::cli::Listen;
use crate::options::{self, Options};
use crate::voice::wav;
use client::{Address, Client, Transcription};
use sound::{Playback, SoundServer};
use source::Source;

/// The user name of this client.
const USER: &str = "listen";
/// Seconds after the wake word in which a question must begin.
const QUESTION_SECONDS: u32 = 8;

/// Runs until the audio ends or the user interrupts.
pub(crate) fn main(arguments: &Listen) -> Result<()> {
    let options = options::read(&arguments.flags)?;
    let address = Address { url: url(&options, arguments)?, token: options.auth.token.clone() };
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    threads.block_on(async {
        let source = match &arguments.file {
            Some(file) => Source::open(file).with_context(|| format!("{}", file.display()))?,
            None => Source::microphone(&SoundServer::connect()?).await?,
        };
        let output = match &arguments.out {
            Some(file) => Output::File(file.clone(), Audio { samples: Vec::new(), rate: 24_000 }),
            None => Output::Loudspeaker(SoundServer::connect()?, None),
        };
        let settings = &options.senses.settings;
        let mut conversation = Conversation::start(address, source, output, settings).await?;
        tokio::select! {
            ended = Box::pin(conversation.run()) => ended?,
            interrupted = tokio::signal::ctrl_c() => interrupted?,
        }
        conversation.output.close()
    })
}

/// The daemon's address of the computer-use protocol.
fn url(options: &Options, arguments: &Listen) -> Result<String> {
    if let Some(url) = &arguments.url {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    match options.address(COMPUTER_USE) {
        Some(address) => Ok(format!("http://{address}")),
        None => bail!("listen.{COMPUTER_USE} is off, and --url names no daemon"),
    }
}

struct Conversation {
    address: Address,
    client: Client,
    source: Source,
    wake_word: Option<WakeWord>,
    output: Output,
}

impl Conversation {
    async fn start(
        address: Address,
        source: Source,
        output: Output,
        settings: &Settings,
    ) -> Result<Self> {
        let wake_word = Some(WakeWord::load(settings)?);
        let mut client = Client::connect(&address, USER).await?;
        let id = client.send("update-settings", json!({ "speech_mode_enabled": true })).await?;
        let updated =
            client.until(|frame| frame["type"] == "settings-updated" && frame["id"] == *id);
        let updated = updated.await?;
        if let Some(reason) = updated["payload"]["unavailable"]["speech_mode_enabled"].as_str() {
            eprintln!("quintet: answers are not spoken: {reason}");
        }
        Ok(Self { address, client, source, wake_word, output })
    }

    async fn run(&mut self) -> Result<()> {
        while let Some(rest) = self.wait_for_wake_word().await? {
            eprintln!("listening");
            // The microphone would pick up a spoken greeting as the question.
            if let Output::File(..) = self.output {
                self.client.send("wakeword-detected", json!({})).await?;
            }
            let Some(question) = self.question(rest).await? else { continue };
            show("you", &question)?;
            let answer = self.answer(&question).await?;
            show("quintet", &answer)?;
            tokio::select! {
                biased;
                heard = self.output.finish_answer() => heard?,
                ended = self.source.drop_live() => ended?,
            }
        }
        Ok(())
    }

    /// The audio after the wake word; `None` if the audio ends without it.
    async fn wait_for_wake_word(&mut self) -> Result<Option<Audio>> {
        eprintln!("waiting for \"hey Quintet\"");
        while let Some(audio) = self.source.next().await? {
            let mut wake_word = self.wake_word.take().context("the wake word is in use")?;
            // Computing blocks, and the connection must be served meanwhile.
            let detect = move || {
                let detected = wake_word.push(&audio);
                (wake_word, detected, audio)
            };
            let (wake_word, detected, audio) = tokio::task::spawn_blocking(detect).await?;
            self.wake_word = Some(wake_word);
            if let Some(end) = detected? {
                let samples = audio.samples[end..].to_vec();
                return Ok(Some(Audio { samples, rate: audio.rate }));
            }
        }
        Ok(None)
    }

    /// The question after the wake word; `None` if there is none.
    async fn question(&mut self, rest: Audio) -> Result<Option<String>> {
        let mut transcription = Transcription::open(&self.address).await?;
        let limit = u64::from(QUESTION_SECONDS) * u64::from(rest.rate);
        let (mut sent, mut next, mut text) = (0u64, Some(rest), String::new());
        loop {
            if let Some(audio) = next.take() {
                sent += audio.samples.len() as u64;
                transcription.push(&audio).await?;
            }
            // Audio is sent as it arrives; transcripts are received in parallel.
            tokio::select! {
                message = transcription.next() => match message? {
                    message if message["type"] == "realtime" => {
                        text = message["text"].as_str().unwrap_or_default().to_owned();
                    }
                    message if message["type"] == "utterance_end" && !text.is_empty() => {
                        return Ok(Some(text));
                    }
                    message if message["type"] == "error" => {
                        bail!("transcription: {}", message["message"].as_str().unwrap_or_default())
                    }
                    _ => {}
                },
                frame = self.client.next() => self.output.take(&frame?).await?,
                audio = self.source.next_or_silence() => match audio? {
                    _ if sent > limit && text.is_empty() => return Ok(None),
                    audio => next = Some(audio),
                },
            }
        }
    }

    /// Sends the question and plays the spoken answer; returns the text of the answer.
    async fn answer(&mut self, question: &str) -> Result<String> {
        let payload = json!({ "text": question, "conversation_ref": "listen" });
        let id = self.client.send("query", payload).await?;
        let mut text = String::new();
        loop {
            tokio::select! {
                frame = self.client.next() => {
                    let frame = frame?;
                    self.output.take(&frame).await?;
                    if frame["id"] != *id {
                        continue;
                    }
                    let payload = &frame["payload"];
                    match frame["type"].as_str().unwrap_or_default() {
                        "streaming-response" => text += payload["text"].as_str().unwrap_or_default(),
                        "streaming-complete" => return Ok(text),
                        "error" => bail!("{}", payload["message"].as_str().unwrap_or("the query failed")),
                        _ => {}
                    }
                }
                // The microphone picks up the answer; that audio is dropped.
                ended = self.source.drop_live() => ended?,
            }
        }
    }
}

/// The destination of spoken answers.
enum Output {
    /// A WAV file, which is written at the end, and its content so far.
    File(PathBuf, Audio),
    /// The loudspeaker, and the answer that is being played.
    Loudspeaker(SoundServer, Option<Playback>),
}

impl Output {
    /// Adds the audio of a frame, if it has any.
    async fn take(&mut self, frame: &Value) -> Result<()> {
        if frame["type"] != "audio-chunk" {
            return Ok(());
        }
        let audio = client::audio(frame).context("the daemon sent invalid audio")?;
        match self {
            Self::File(_, spoken) => {
                spoken.rate = audio.rate;
                spoken.samples.extend(audio.samples);
            }
            Self::Loudspeaker(_, Some(playback)) => playback.push(&audio),
            Self::Loudspeaker(server, playback) => {
                playback.insert(server.play(audio.rate).await?).push(&audio);
            }
        }
        Ok(())
    }

    /// Returns when the answer has been played.
    async fn finish_answer(&mut self) -> Result<()> {
        match self {
            Self::Loudspeaker(_, playback) => match playback.take() {
                Some(playback) => playback.finish().await,
                None => Ok(()),
            },
            Self::File(..) => Ok(()),
        }
    }

    fn close(self) -> Result<()> {
        match self {
            Self::File(file, spoken) => {
                wav::write(&file, &spoken).with_context(|| format!("{}", file.display()))
            }
            Self::Loudspeaker(..) => Ok(()),
        }
    }
}

fn show(who: &str, text: &str) -> Result<()> {
    Ok(writeln!(std::io::stdout(), "{who}: {}", text.trim())?)
}
