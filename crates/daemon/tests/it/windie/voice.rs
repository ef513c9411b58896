//! Answers that are spoken and speech that is written down, as clients of the computer-use protocol
//! meet them.

use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Duration, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::computer::{Computer, first, kinds};
use crate::daemon::{WAIT_LIMIT, World, quintet};

/// A provider speaks whose audio has a sample for each byte of the text.
const SPEAKING: &str =
    "[approval]\nkinds = []\n[verify]\nauto = false\n[senses]\nspeech = \"fake/tts\"\n";

/// The texts that were spoken, by the provider of the tests.
fn spoken(frames: &[Value]) -> Vec<String> {
    let chunks = frames.iter().filter(|frame| frame["type"] == "audio-chunk");
    let text = |chunk: &Value| {
        assert_eq!(chunk["payload"]["sample_rate"], 24_000);
        assert!(chunk.get("sequence").is_none() && chunk.get("event_id").is_none(), "{chunk}");
        let audio = STANDARD.decode(chunk["payload"]["audio"].as_str().unwrap()).unwrap();
        String::from_utf8(audio.chunks(2).map(|pair| pair[0]).collect()).unwrap()
    };
    chunks.map(text).collect()
}

async fn speaking(world: &World) -> Computer {
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    computer.send("update-settings", json!({ "speech_mode_enabled": true })).await;
    let updated = computer.until("settings-updated").await.pop().unwrap();
    assert_eq!(updated["payload"].get("unavailable"), None, "{updated}");
    computer
}

#[tokio::test]
async fn an_answer_is_spoken_sentence_by_sentence() {
    let world = World::start(SPEAKING).await;
    let mut computer = speaking(&world).await;
    let answer =
        ["**One** is do", "ne. Run `ls` now!\n```\nrm x. y. z.\n```\n", "[Three](http://x.y) end"];
    // Speech begins while the text is still written: the end of it waits for the first sentence.
    let go = world.home.path().join("go");
    let id = computer.query("c1", json!([{ "deltas": answer, "hold_until": go }])).await;
    let mut told = computer.until("audio-chunk").await;
    std::fs::write(&go, "").unwrap();
    told.extend(computer.until("streaming-complete").await);
    assert_eq!(spoken(&told), ["One is done.", "Run ls now!", "Three end"]);
    let chunk = first(&told, "audio-chunk");
    assert_eq!((&chunk["id"], &chunk["turn_ref"]), (&json!(id), &json!(id)));
    assert_eq!((&chunk["conversation_ref"], &chunk["user_id"]), (&json!("c1"), &json!("u")));
}

#[tokio::test]
async fn what_is_silent_stays_silent() {
    let world = World::start(SPEAKING).await;
    let mut computer = Computer::connect(world.windie(), "u", Value::Null).await;
    let told = computer.turn("c1", json!([{ "text": "Not spoken." }])).await;
    assert_eq!(spoken(&told), Vec::<String>::new());
    computer.send("update-settings", json!({ "speech_mode_enabled": true })).await;
    computer.until("settings-updated").await;
    let told = computer.turn("c1", json!([{ "text": "```\ncode\n```" }])).await;
    assert_eq!(spoken(&told), Vec::<String>::new());
}

#[tokio::test]
async fn a_stop_ends_the_speech() {
    let world = World::start(SPEAKING).await;
    let mut computer = speaking(&world).await;
    let flow = json!([{ "deltas": ["Again and again. "], "repeat": 1000, "gap_ms": 5 }]);
    let id = computer.query("c1", flow).await;
    computer.until("audio-chunk").await;
    computer.stop("c1", &id).await;
    let mut told = computer.until("streaming-complete").await;
    if !kinds(&told).contains(&"stop-query-ack") {
        told.extend(computer.until("stop-query-ack").await);
    }
    // Nothing of the stopped answer follows.
    let told = computer.turn("c1", json!([{ "text": "On." }])).await;
    assert_eq!(spoken(&told), ["On."]);
}

#[tokio::test]
async fn a_greeting_is_spoken() {
    let world = World::start(SPEAKING).await;
    let mut computer = speaking(&world).await;
    let id = computer.send("wakeword-detected", json!({})).await;
    let told = computer.until("audio-chunk").await;
    assert_eq!(kinds(&told), ["wakeword-activated", "wakeword-greeting", "audio-chunk"]);
    assert_eq!(told[0]["payload"].get("unavailable"), None);
    assert_eq!(spoken(&told), [told[1]["payload"]["text"].as_str().unwrap()]);
    assert_eq!(told[2]["id"], id);
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn open(world: &World) -> Socket {
    let url = format!("{}/ws/transcription", world.windie().replace("http://", "ws://"));
    let (mut socket, _) = connect_async(url).await.unwrap();
    let status = receive(&mut socket).await;
    assert_eq!(
        (&status["type"], status["client_id"].as_str().map(str::len)),
        (&json!("status"), Some(32))
    );
    socket
}

async fn receive(socket: &mut Socket) -> Value {
    loop {
        let message = timeout(WAIT_LIMIT, socket.next()).await.unwrap();
        if let Message::Text(text) = message.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// The words of a text, without what depends on how its audio was cut.
fn words(text: &Value) -> String {
    let text = text.as_str().unwrap().to_lowercase();
    text.chars().filter(|letter| letter.is_alphanumeric() || *letter == ' ').collect()
}

fn frame(metadata: &str, samples: &[u8]) -> Message {
    let length = u32::try_from(metadata.len()).unwrap().to_le_bytes();
    Message::binary([&length[..], metadata.as_bytes(), samples].concat())
}

/// Runs the program with the user's own weights; returns what it prints.
#[track_caller]
fn with_weights(arguments: &[&str]) -> String {
    let output = quintet(arguments).env_remove("QUINTET_LOCAL_MODELS_DIR").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Samples of 16 bits at 24 kHz in which a text is said.
fn said(text: &str) -> Vec<u8> {
    let home = TempDir::new().unwrap();
    let file = home.path().join("said.wav");
    with_weights(&["say", text, "--out", file.to_str().unwrap()]);
    std::fs::read(&file).unwrap().split_off(44)
}

/// Writes a WAV file in which the wake word and a question are said.
fn record_question(file: &str) {
    with_weights(&["say", "x", "--out", file]);
    let header = std::fs::read(file).unwrap()[..40].to_vec();
    let samples =
        [vec![0; 48_000], said("Hey Quintet!"), vec![0; 24_000], said("What time is it?")].concat();
    let size = u32::try_from(samples.len()).unwrap().to_le_bytes();
    std::fs::write(file, [&header[..], &size, &samples].concat()).unwrap();
}

#[tokio::test]
async fn a_question_after_the_wake_word_is_answered_aloud() {
    let world = World::start_with_weights("").await;
    let (recorded, out) = (world.home.path().join("in.wav"), world.home.path().join("out.wav"));
    let (recorded, out) = (recorded.to_str().unwrap(), out.to_str().unwrap());
    record_question(recorded);
    let url = world.windie().to_owned();
    let arguments = ["listen", "--file", recorded, "--out", out, "--url", &url];
    let arguments = arguments.map(str::to_owned);
    let listen = move || with_weights(&arguments.each_ref().map(String::as_str));
    let printed = tokio::task::spawn_blocking(listen).await.unwrap();
    assert_eq!(printed, "you: What time is it?\nquintet: echo: What time is it?");
    let heard = with_weights(&["transcribe", out]).to_lowercase();
    assert!(heard.contains("what time is it"), "{heard}");
}

/// A sound server in which what is played in `room` is what the microphone hears.
struct SoundServer {
    server: Child,
    home: TempDir,
}

impl SoundServer {
    /// Starts the server; `None` if it is not installed.
    async fn start() -> Option<Self> {
        let home = TempDir::new().unwrap();
        let socket = home.path().join("native");
        let script = home.path().join("default.pa");
        let lines = [
            &format!(
                "load-module module-native-protocol-unix auth-anonymous=1 socket={}",
                socket.display()
            ),
            "load-module module-null-sink sink_name=room",
            "load-module module-null-sink sink_name=loudspeaker",
            "set-default-source room.monitor",
            "set-default-sink loudspeaker",
        ];
        std::fs::write(&script, lines.join("\n")).unwrap();
        let mut server = Command::new("pulseaudio");
        server.args(["-n", "--use-pid-file=no", "--exit-idle-time=-1", "-F"]).arg(&script);
        server
            .env("HOME", home.path())
            .env("XDG_RUNTIME_DIR", home.path())
            .env_remove("PULSE_SERVER");
        let server = server.stderr(Stdio::null()).kill_on_drop(true).spawn().ok()?;
        let started = async {
            while !socket.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(WAIT_LIMIT, started).await.unwrap();
        Some(Self { server, home })
    }

    /// A program that uses the server.
    fn client(&self, mut program: Command) -> Command {
        let socket = self.home.path().join("native");
        program.env("PULSE_SERVER", format!("unix:{}", socket.display()));
        program.env("PULSE_COOKIE", self.home.path().join("cookie")).kill_on_drop(true);
        program
    }
}

#[tokio::test]
async fn the_microphone_asks_and_the_loudspeaker_answers() {
    let Some(mut sound) = SoundServer::start().await else {
        return println!("pulseaudio is not installed: the microphone was not tested");
    };
    let world = World::start_with_weights("").await;
    let recorded = world.home.path().join("in.wav");
    record_question(recorded.to_str().unwrap());
    let mut recorder = Command::new("parec");
    recorder.args([
        "--device=loudspeaker.monitor",
        "--rate=24000",
        "--channels=1",
        "--format=s16le",
    ]);
    let mut recorder = sound.client(recorder).stdout(Stdio::piped()).spawn().unwrap();
    let mut loudspeaker = recorder.stdout.take().unwrap();
    let mut listen = Command::from(quintet(&["listen", "--url", world.windie()]));
    listen.env_remove("QUINTET_LOCAL_MODELS_DIR").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut listen = sound.client(listen).spawn().unwrap();
    let mut states = BufReader::new(listen.stderr.take().unwrap()).lines();
    let mut state = async || timeout(WAIT_LIMIT, states.next_line()).await.unwrap().unwrap();
    assert_eq!(state().await.as_deref(), Some("waiting for \"hey Quintet\""));
    let mut play = Command::new("paplay");
    play.arg("--device=room").arg(&recorded);
    let played = sound.client(play).status();
    assert!(timeout(WAIT_LIMIT, played).await.unwrap().unwrap().success());
    assert_eq!(state().await.as_deref(), Some("listening"));
    // It waits again when the answer was heard, of which the recorder still gets the last part.
    assert_eq!(state().await.as_deref(), Some("waiting for \"hey Quintet\""));
    let mut printed = BufReader::new(listen.stdout.take().unwrap()).lines();
    assert_eq!(printed.next_line().await.unwrap().as_deref(), Some("you: What time is it?"));
    assert_eq!(
        printed.next_line().await.unwrap().as_deref(),
        Some("quintet: echo: What time is it?")
    );
    let mut heard = Vec::new();
    let said = async {
        // The answer, and a second of silence behind it.
        let is_over = |heard: &[u8]| {
            let end = heard.len().saturating_sub(48_000);
            heard.iter().any(|byte| *byte != 0) && heard[end..].iter().all(|byte| *byte == 0)
        };
        while !is_over(&heard) {
            loudspeaker.read_buf(&mut heard).await.unwrap();
        }
    };
    timeout(WAIT_LIMIT, said).await.unwrap();
    let out = world.home.path().join("out.wav");
    let mut wav = std::fs::read(&recorded).unwrap();
    wav.truncate(40);
    wav.extend(u32::try_from(heard.len()).unwrap().to_le_bytes());
    wav.extend(heard);
    std::fs::write(&out, wav).unwrap();
    let heard = with_weights(&["transcribe", out.to_str().unwrap()]).to_lowercase();
    assert!(heard.contains("what time is it"), "{heard}");
    // Without the server there is nothing to listen to.
    sound.server.kill().await.unwrap();
    let ended = timeout(WAIT_LIMIT, listen.wait()).await.unwrap().unwrap();
    assert!(!ended.success());
    let reason = state().await.unwrap();
    assert!(reason.contains("the sound server ended the recording"), "{reason}");
}

#[tokio::test]
async fn speech_is_written_down() {
    let world = World::start_with_weights("").await;
    let file = world.home.path().join("said.wav");
    let file = file.to_str().unwrap();
    with_weights(&["say", "Open the settings, please.", "--out", file]);
    let read = with_weights(&["transcribe", file]);
    assert_eq!(words(&json!(read)), "open the settings please");
    let wav = std::fs::read(file).unwrap();
    let samples = [&wav[44..], &[0; 48_000]].concat();
    let mut socket = open(&world).await;
    // What cannot be read is ignored.
    for bad in [
        Message::binary(vec![1, 2]),
        Message::binary([&u32::MAX.to_le_bytes()[..], b"{}"].concat()),
        frame("{nope", &[0; 4]),
        frame(r#"{"sampleRate":16000}"#, &[0; 3]),
        frame(r#"{"sampleRate":1}"#, &[0; 4]),
        frame(r#"{"sampleRate":10000000}"#, &[0; 4]),
        Message::text("no JSON"),
        Message::text(r#"{"type":"dance"}"#),
    ] {
        socket.send(bad).await.unwrap();
    }
    let langs = r#"{"type":"set_langs","source_language":"en","target_language":"en"}"#;
    socket.send(Message::text(langs)).await.unwrap();
    // Half a sentence that does not count.
    socket.send(frame(r#"{"sampleRate":24000}"#, &wav[44..40_000])).await.unwrap();
    socket.send(Message::text(r#"{"type":"start_over"}"#)).await.unwrap();
    for _ in 0..2 {
        for piece in samples.chunks(9_600) {
            socket.send(frame(r#"{"sampleRate":24000}"#, piece)).await.unwrap();
        }
        let mut heard = receive(&mut socket).await;
        while heard["is_final"] == false {
            assert_eq!(heard["type"], "realtime");
            heard = receive(&mut socket).await;
        }
        assert_eq!((&heard["type"], &heard["is_final"]), (&json!("realtime"), &json!(true)));
        assert_eq!(words(&heard["text"]), "open the settings please");
        assert_eq!(receive(&mut socket).await, json!({ "type": "utterance_end" }));
    }
}
