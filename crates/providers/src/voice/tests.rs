//! Tests of requests to voice services and of their answers.

use quintet_kernel::port::{Audio, Recognizer as _, SenseError, SpeechSynthesizer as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::wire::{Upload, audio, reason, transcript};
use super::{HttpRecognizer, HttpSpeaker};
use crate::config::{Api, ProviderConfig, Secret};

#[test]
fn an_utterance_is_uploaded_as_a_wav_file() {
    let upload = Upload::new("whisper-1", &[0.0, 1.0, -1.0], Some("en"));
    let text = String::from_utf8_lossy(&upload.body).into_owned();
    for part in [
        "name=\"model\"\r\n\r\nwhisper-1\r\n",
        "name=\"language\"\r\n\r\nen\r\n",
        "name=\"response_format\"\r\n\r\njson\r\n",
        "filename=\"speech.wav\"\r\nContent-Type: audio/wav\r\n\r\nRIFF",
    ] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    let start = upload.body.windows(4).position(|part| part == b"RIFF").unwrap();
    let wav = audio(&upload.body[start..]).unwrap();
    assert_eq!(wav, Audio { samples: vec![0, 32_767, -32_767], rate: 16_000 });
}

#[test]
fn answers_are_checked() {
    assert_eq!(transcript(br#"{"text":" Hello. "}"#), Ok("Hello.".into()));
    assert!(transcript(b"{}").is_err() && transcript(b"nope").is_err());
    let pcm = audio(&[1, 0, 255, 255, 7]).unwrap();
    assert_eq!(pcm, Audio { samples: vec![1, -1], rate: 24_000 });
    assert!(audio(b"RIFF").is_err());
    assert!(audio(b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd").is_err());
    assert!(audio(b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\xff").is_err());
    assert_eq!(reason(br#"{"error":{"message":"no such voice"}}"#), ": no such voice");
    assert_eq!(reason(b"<html>"), "");
}

fn config(address: &str) -> ProviderConfig {
    let mut config = ProviderConfig::new("p", Api::OpenAiChat);
    config.base_url = format!("{address}/v1/");
    config.api_key = Some(Secret::new("sk-secret-secret"));
    config
}

/// Answers one request; returns its head.
async fn serve(listener: TcpListener, status: &str, body: &[u8]) -> String {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !request.windows(4).any(|part| part == b"\r\n\r\n") {
        let read = stream.read(&mut buffer).await.unwrap();
        request.extend_from_slice(&buffer[..read]);
    }
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    String::from_utf8_lossy(&request).to_lowercase()
}

#[tokio::test]
async fn a_provider_transcribes_and_speaks() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let recognizer = HttpRecognizer::new(&config(&address), "whisper-1");
    assert!(!recognizer.is_repeatable());
    let (request, text) = tokio::join!(
        serve(listener, "200 OK", br#"{"text":"Hello."}"#),
        recognizer.recognize(vec![0.0; 100], None)
    );
    assert_eq!(text, Ok("Hello.".into()));
    assert!(request.starts_with("post /v1/audio/transcriptions "), "{request}");
    assert!(request.contains("authorization: bearer sk-secret-secret"), "{request}");

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let speaker = HttpSpeaker::new(&config(&address), "tts-1", "alloy");
    let (request, audio) =
        tokio::join!(serve(listener, "200 OK", &[2, 0]), speaker.speak("Hi.".into()));
    assert_eq!(audio, Ok(Audio { samples: vec![2], rate: 24_000 }));
    assert!(request.starts_with("post /v1/audio/speech "), "{request}");
}

#[tokio::test]
async fn refusals_do_not_show_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let speaker = HttpSpeaker::new(&config(&address), "tts-1", "alloy");
    let body = br#"{"error":{"message":"bad key sk-secret-secret"}}"#;
    let (_, audio) =
        tokio::join!(serve(listener, "401 Unauthorized", body), speaker.speak("Hi.".into()));
    let Err(SenseError::Failed(reason)) = audio else { panic!("{audio:?}") };
    assert!(reason.contains("401") && !reason.contains("secret-secret"), "{reason}");
}
