//! Speech: the time until a spoken sentence is transcribed and a written one is spoken, and their
//! cost.
//!
//! The weights are the user's (`quintet models pull senses`).

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

use super::Plan;
use crate::child::Child;
use crate::client::websocket::WebSocket;
use crate::clock::median;
use crate::rig::Rig;
use crate::table::Row;

const SENTENCE: &str = "Open the settings, turn on dark mode and restart the terminal.";
/// Samples per second of the output of `quintet say`.
const RATE: usize = 24_000;
const WAV_HEADER_BYTES: usize = 44;
const FRAME: Duration = Duration::from_millis(100);
/// Bytes of a frame of 16-bit samples.
const FRAME_BYTES: usize = RATE / 10 * 2;
/// Frames of silence that certainly end a sentence.
const SILENT_FRAMES: usize = 100;

pub(super) async fn run(rig: &Rig, plan: &Plan) -> Result<Vec<Row>> {
    let speech = speech(rig.quintet(), &rig.data("said.wav")).await?;
    let seconds = speech.len() as f64 / (RATE * 2) as f64;
    // Measured daemons do not have the user's environment, but these weights are the user's.
    let home = std::env::var_os("HOME").context("no home")?;
    let weights = Path::new(&home).join(".cache/quintet/models");
    let weights = format!("local.models_dir={}", weights.display());
    // The bench model writes no words; the demo model does.
    let set = ["senses.threads=1", "default_model=demo/demo", &weights];
    let daemon = rig.daemon_with("voice", &set).await?;
    // The models are loaded on first use.
    transcribe(&daemon, &speech).await?;
    first_audio(rig, &daemon).await?;
    let (mut partials, mut finals, mut cpu, mut audio) = (vec![], vec![], vec![], vec![]);
    for _ in 0..plan.rounds(5, 2) {
        let before = daemon.cpu_ms()?;
        let heard = transcribe(&daemon, &speech).await?;
        cpu.push((daemon.cpu_ms()? - before) / 1e3 / seconds);
        partials.push(heard.first_partial_ms);
        finals.push(heard.final_ms);
        audio.push(first_audio(rig, &daemon).await?);
    }
    let rss = daemon.rss_mb()?;
    daemon.stop().await?;
    Ok(vec![
        Row::new("begin of speech → first partial text, ms").quintet(median(&partials)),
        Row::new("end of speech → final text, ms").quintet(median(&finals)),
        Row::new("transcription, CPU s per s of audio")
            .quintet(median(&cpu))
            .note(format!("a sentence of {seconds:.1} s, in real time")),
        Row::new("text → first audio chunk, ms")
            .quintet(median(&audio))
            .note(format!("{rss:.0} MB with voice activity, transcription and speech loaded")),
    ])
}

/// The samples of a sentence, without a header.
async fn speech(program: &Path, file: &Path) -> Result<Vec<u8>> {
    let mut say = Command::new(program);
    say.args(["say", SENTENCE, "--out"]).arg(file);
    let said = say.status().await?;
    ensure!(said.success(), "quintet models pull senses");
    let mut wav = std::fs::read(file)?;
    ensure!(wav.len() > WAV_HEADER_BYTES, "nothing was said");
    Ok(wav.split_off(WAV_HEADER_BYTES))
}

struct Heard {
    first_partial_ms: f64,
    /// Measured from the end of the speech.
    final_ms: f64,
}

/// Sends speech in real time, and records when the transcripts arrive.
async fn transcribe(daemon: &Child, speech: &[u8]) -> Result<Heard> {
    let url = format!("ws://{}/ws/transcription", daemon.http("windie")?);
    let mut socket = WebSocket::open(&url).await?;
    let silence = [0; FRAME_BYTES];
    let silence = std::iter::repeat_n(&silence[..], SILENT_FRAMES);
    let (began, mut next) = (Instant::now(), Instant::now());
    let ends = began + FRAME * u32::try_from(speech.len().div_ceil(FRAME_BYTES))?;
    let mut first_partial_ms = None;
    let metadata = json!({ "sampleRate": RATE }).to_string();
    let header = [&u32::try_from(metadata.len())?.to_le_bytes()[..], metadata.as_bytes()].concat();
    for samples in speech.chunks(FRAME_BYTES).chain(silence) {
        socket.send_bytes([&header[..], samples].concat()).await?;
        next += FRAME;
        while let Ok(message) = timeout_at(next, socket.next()).await {
            let message: Value = serde_json::from_str(&message?)?;
            if message["type"] != "realtime" {
                continue;
            }
            let first = *first_partial_ms.get_or_insert(began.elapsed().as_secs_f64() * 1e3);
            if message["is_final"] == true {
                let final_ms = Instant::now().saturating_duration_since(ends).as_secs_f64() * 1e3;
                return Ok(Heard { first_partial_ms: first, final_ms });
            }
        }
    }
    anyhow::bail!("nothing was transcribed")
}

/// The delay between the text of a short answer and its audio, in milliseconds.
async fn first_audio(rig: &Rig, daemon: &Child) -> Result<f64> {
    let mut socket = WebSocket::open(&format!("ws://{}/ws", daemon.http("windie")?)).await?;
    let id = format!("v{}", rig.script(0, 0).id);
    let settings = json!({ "speech_mode_enabled": true });
    let query = json!({ "text": "hello", "conversation_ref": &id });
    let hello = json!({ "type": "handshake", "user_id": &id });
    socket.send(hello.to_string()).await?;
    let settings = json!({ "type": "update-settings", "id": "settings", "payload": settings });
    socket.send(settings.to_string()).await?;
    while !socket.next().await?.contains("settings-updated") {}
    let query = json!({ "type": "query", "id": &id, "payload": query });
    socket.send(query.to_string()).await?;
    let (mut text, mut audio_ms) = (None, None);
    loop {
        let message: Value = serde_json::from_str(&socket.next().await?)?;
        match message["type"].as_str().unwrap_or_default() {
            "streaming-response" if audio_ms.is_none() => text = Some(Instant::now()),
            "audio-chunk" if audio_ms.is_none() => {
                audio_ms = text.map(|text| text.elapsed().as_secs_f64() * 1e3);
            }
            "streaming-complete" => return audio_ms.context("nothing was spoken"),
            _ => {}
        }
    }
}
