//! Tests of transcription services, played by a small server.

use futures_util::{SinkExt as _, StreamExt as _};
use quintet_kernel::port::{Audio, SenseError, Transcriber as _, Transcript};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

use super::{OUTPUT_CAPACITY, Protocol, RemoteTranscriber, Service};

/// The server's end of a connection, and the request that opened it.
struct Peer {
    socket: WebSocketStream<TcpStream>,
    uri: String,
    authorization: String,
}

impl Peer {
    #[expect(clippy::result_large_err, reason = "the callback's type is the library's")]
    async fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().await.unwrap();
        let (mut uri, mut authorization) = (String::new(), String::new());
        let note = |request: &Request, response: Response| {
            uri = request.uri().to_string();
            let given = request.headers().get("authorization");
            authorization = given.map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default();
            Ok(response)
        };
        let socket = accept_hdr_async(stream, note).await.unwrap();
        Self { socket, uri, authorization }
    }

    async fn send(&mut self, event: Value) {
        self.socket.send(Message::text(event.to_string())).await.unwrap();
    }

    async fn next(&mut self) -> Message {
        self.socket.next().await.unwrap().unwrap()
    }

    /// The next event of this type, and the bytes of audio appended before it.
    async fn until(&mut self, kind: &str) -> (Value, usize) {
        let mut bytes = 0;
        loop {
            let Message::Text(text) = self.next().await else { continue };
            let event: Value = serde_json::from_str(&text).unwrap();
            if event["type"] == kind {
                return (event, bytes);
            }
            bytes += event["audio"].as_str().map_or(0, |audio| audio.len() * 3 / 4);
        }
    }
}

async fn listen(protocol: Protocol) -> (TcpListener, RemoteTranscriber) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/v1/realtime?model=gpt-realtime", listener.local_addr().unwrap());
    let key = Some("sk-secret-secret".to_owned());
    let service = Service { url, headers: Vec::new(), key, protocol };
    (listener, RemoteTranscriber::new(service))
}

fn realtime() -> Protocol {
    Protocol::Realtime { model: "gpt-4o-transcribe".into() }
}

fn of(item: &str, kind: &str, name: &str, text: &str) -> Value {
    let kind = format!("conversation.item.input_audio_transcription.{kind}");
    json!({ "type": kind, "item_id": item, name: text })
}

fn second(rate: u32) -> Audio {
    Audio { samples: vec![1000; rate as usize], rate }
}

#[tokio::test]
async fn deltas_are_collected_until_the_utterance_ends() {
    let (listener, transcriber) = listen(realtime()).await;
    let stream = transcriber.open().unwrap();
    let (mut peer, ()) = tokio::join!(Peer::accept(&listener), async {
        stream.set_language("en".into()).await;
        stream.push(second(16_000)).await.unwrap();
        stream.push(second(48_000)).await.unwrap();
        stream.finish().await;
    });
    assert_eq!(peer.uri, "/v1/realtime?model=gpt-realtime");
    assert_eq!(peer.authorization, "Bearer sk-secret-secret");
    let (first, _) = peer.until("session.update").await;
    let input = &first["session"]["audio"]["input"];
    assert_eq!(input["transcription"], json!({ "model": "gpt-4o-transcribe" }));
    assert_eq!(input["format"], json!({ "type": "audio/pcm", "rate": 24_000 }));
    assert_eq!(input["turn_detection"]["silence_duration_ms"], 500);
    let (second, _) = peer.until("session.update").await;
    assert_eq!(second["session"]["audio"]["input"]["transcription"]["language"], "en");
    let (_, bytes) = peer.until("input_audio_buffer.commit").await;
    assert!((95_000..97_000).contains(&bytes), "two seconds at 24 kHz, not {bytes} bytes");
    peer.send(json!({ "type": "input_audio_buffer.committed", "item_id": "a" })).await;
    peer.send(of("a", "delta", "delta", "Hel")).await;
    peer.send(of("a", "delta", "delta", "lo.")).await;
    peer.send(json!({ "type": "rate_limits.updated" })).await;
    peer.send(of("a", "completed", "transcript", "Hello. ")).await;
    let mut transcripts = Vec::new();
    while let Some(transcript) = stream.next().await {
        transcripts.push(transcript.unwrap());
    }
    let partial = |text: &str| Transcript::Partial(text.into());
    let end = [Transcript::Final("Hello.".into()), Transcript::UtteranceEnd];
    assert_eq!(transcripts, [&[partial("Hel"), partial("Hello.")], &end[..]].concat());
}

#[tokio::test]
async fn discarded_utterances_are_not_reported_and_silence_ends_nothing() {
    let (listener, transcriber) = listen(realtime()).await;
    let stream = transcriber.open().unwrap();
    let (mut peer, pushed) = tokio::join!(Peer::accept(&listener), stream.push(second(16_000)));
    pushed.unwrap();
    peer.send(json!({ "type": "input_audio_buffer.committed", "item_id": "a" })).await;
    peer.send(of("a", "delta", "delta", "No")).await;
    assert_eq!(stream.next().await, Some(Ok(Transcript::Partial("No".into()))));
    stream.start_over().await;
    peer.until("input_audio_buffer.clear").await;
    peer.send(of("a", "delta", "delta", " way")).await;
    peer.send(of("a", "completed", "transcript", "No way")).await;
    peer.send(json!({ "type": "input_audio_buffer.committed", "item_id": "b" })).await;
    peer.send(of("b", "completed", "transcript", " ")).await;
    stream.finish().await;
    peer.until("input_audio_buffer.commit").await;
    let empty = json!({ "code": "input_audio_buffer_commit_empty", "message": "too small" });
    peer.send(json!({ "type": "error", "error": empty })).await;
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn an_error_does_not_contain_the_key() {
    let (listener, transcriber) = listen(realtime()).await;
    let stream = transcriber.open().unwrap();
    let mut peer = Peer::accept(&listener).await;
    peer.send(json!({ "type": "error", "error": { "message": "bad key sk-secret-secret" } })).await;
    let Some(Err(SenseError::Failed(reason))) = stream.next().await else { panic!() };
    assert_eq!(reason, "bad key [key]");
    drop(listener);
    let Some(Err(SenseError::Failed(reason))) = transcriber.open().unwrap().next().await else {
        panic!()
    };
    assert!(reason.starts_with("the transcription service cannot be reached"), "{reason}");
}

#[tokio::test]
async fn partial_transcripts_are_dropped_and_audio_waits() {
    let (listener, transcriber) = listen(realtime()).await;
    let stream = transcriber.open().unwrap();
    let mut peer = Peer::accept(&listener).await;
    peer.send(json!({ "type": "input_audio_buffer.committed", "item_id": "a" })).await;
    for _ in 0..2 * OUTPUT_CAPACITY {
        peer.send(of("a", "delta", "delta", "x")).await;
    }
    // The service answers audio once it has read all of the above.
    stream.push(second(24_000)).await.unwrap();
    peer.until("input_audio_buffer.append").await;
    peer.send(of("a", "completed", "transcript", "x!")).await;
    let mut partials = 0;
    loop {
        match stream.next().await.unwrap().unwrap() {
            Transcript::Partial(_) => partials += 1,
            Transcript::Final(text) => break assert_eq!(text, "x!"),
            Transcript::UtteranceEnd => panic!("the end precedes the text"),
        }
    }
    assert!((1..=2 * OUTPUT_CAPACITY).contains(&partials), "{partials}");
}

#[tokio::test]
async fn a_gateway_receives_frames_and_its_transcripts_are_returned() {
    let (listener, transcriber) = listen(Protocol::Nova).await;
    let stream = transcriber.open().unwrap();
    let (mut peer, ()) = tokio::join!(Peer::accept(&listener), async {
        stream.set_language("de".into()).await;
        stream.push(Audio { samples: vec![1, -1], rate: 8_000 }).await.unwrap();
        stream.start_over().await;
        stream.finish().await;
    });
    peer.send(json!({ "type": "status", "client_id": "x" })).await;
    let langs = json!({ "type": "set_langs", "source_language": "de", "target_language": "de" });
    assert_eq!(peer.next().await, Message::text(langs.to_string()));
    let metadata = br#"{"sampleRate":8000}"#;
    let frame = [&[19, 0, 0, 0], &metadata[..], &[1, 0, 255, 255]].concat();
    assert_eq!(peer.next().await, Message::binary(frame));
    assert_eq!(peer.next().await, Message::text(r#"{"type":"start_over"}"#));
    assert_eq!(peer.next().await.into_data().len(), 4 + metadata.len() + 16_000);
    peer.send(json!({ "type": "realtime", "text": "Gu", "is_final": false })).await;
    peer.send(json!({ "type": "realtime", "text": "Gut", "is_final": true })).await;
    peer.send(json!({ "type": "utterance_end" })).await;
    let mut transcripts = Vec::new();
    while let Some(transcript) = stream.next().await {
        transcripts.push(transcript.unwrap());
    }
    let (partial, whole) = (Transcript::Partial("Gu".into()), Transcript::Final("Gut".into()));
    assert_eq!(transcripts, [partial, whole, Transcript::UtteranceEnd]);
}
