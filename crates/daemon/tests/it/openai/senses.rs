//! Embeddings and audio.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use super::*;
use crate::daemon::World;

const EMBEDDING_MODEL: &str = "sentence-transformers/all-MiniLM-L6-v2";

/// A multipart form with one file.
fn form(fields: &[(&str, &str)], file: &[u8]) -> (String, Vec<u8>) {
    let mut body = Vec::new();
    for (name, value) in fields {
        let part =
            format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(
        b"--b\r\ncontent-disposition: form-data; name=\"file\"; filename=\"a.wav\"\r\n\r\n",
    );
    body.extend_from_slice(file);
    body.extend_from_slice(b"\r\n--b--\r\n");
    ("multipart/form-data; boundary=b".into(), body)
}

async fn transcribe(client: &Client, fields: &[(&str, &str)], file: &[u8]) -> (u16, String) {
    let (kind, body) = form(fields, file);
    let request = client.request(Method::POST, "/v1/audio/transcriptions");
    let response = request.header("content-type", kind).body(body).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

#[tokio::test]
async fn without_weights_the_error_says_how_to_get_them() {
    let world = World::start("").await;
    let client = world.openai();
    let silence = silence();
    let (status, embeddings) =
        client.post("/v1/embeddings", json!({ "model": EMBEDDING_MODEL, "input": "x" })).await;
    let (spoken, speech) = client.post("/v1/audio/speech", json!({ "input": "Hello." })).await;
    let (transcribed, transcript) = transcribe(&client, &[("model", "whisper-1")], &silence).await;
    let transcript: Value = serde_json::from_str(&transcript).unwrap();
    for (status, answer, sense) in [
        (status, embeddings, "embeddings"),
        (spoken, speech, "speech"),
        (transcribed, transcript, "transcription"),
    ] {
        assert_eq!(status, 503, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("quintet models pull {sense}")), "{message}");
    }
    assert_eq!(transcribe(&client, &[], b"ID3 an mp3").await.0, 400);
    assert_eq!(transcribe(&client, &[("response_format", "srt")], &silence).await.0, 400);
}

#[tokio::test]
async fn texts_are_embedded_and_speech_is_transcribed() {
    let world = World::start_with_weights("").await;
    let client = world.openai();
    let body = json!({ "model": EMBEDDING_MODEL, "input": ["a cat", "a kitten"] });
    let (status, floats) = client.post("/v1/embeddings", body.clone()).await;
    assert_eq!(status, 200, "{floats}");
    let vector = floats["data"][1]["embedding"].as_array().unwrap();
    assert_eq!((vector.len(), &floats["data"][1]["index"]), (384, &json!(1)));
    let (_, packed) = client
        .post("/v1/embeddings", with(body.clone(), json!({ "encoding_format": "base64" })))
        .await;
    let bytes = STANDARD.decode(packed["data"][1]["embedding"].as_str().unwrap()).unwrap();
    assert_eq!(bytes.len(), 384 * 4);
    let first = f32::from_le_bytes(bytes[..4].try_into().unwrap());
    assert!((f64::from(first) - vector[0].as_f64().unwrap()).abs() < 1e-6);
    let same = with(body.clone(), json!({ "dimensions": 384 }));
    assert_eq!(client.post("/v1/embeddings", same).await.0, 200);
    let (status, other) =
        client.post("/v1/embeddings", with(body, json!({ "dimensions": 256 }))).await;
    assert_eq!((status, &other["error"]["param"]), (400, &json!("dimensions")));
    let unknown = json!({ "model": "text-embedding-3-small", "input": "x" });
    assert_eq!(client.post("/v1/embeddings", unknown).await.0, 404);

    let body = json!({ "model": "tts-1", "voice": "alloy", "input": "The weather is fine today." });
    let request = client.request(Method::POST, "/v1/audio/speech").body(body.to_string());
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "audio/wav");
    let wav = response.bytes().await.unwrap();
    let fields = [("model", "whisper-1"), ("response_format", "verbose_json"), ("language", "en")];
    let (status, transcript) = transcribe(&client, &fields, &wav).await;
    assert_eq!(status, 200, "{transcript}");
    let transcript: Value = serde_json::from_str(&transcript).unwrap();
    let text = transcript["text"].as_str().unwrap().to_lowercase();
    assert!(text.contains("weather"), "{transcript}");
    assert!(transcript["duration"].as_f64().unwrap() > 0.5);
    let (_, plain) = transcribe(&client, &[("response_format", "text")], &wav).await;
    assert_eq!(plain.trim().to_lowercase(), text);
    for rate in [0, 1, 1 << 28] {
        let (status, refused) = transcribe(&client, &[], &silence_at(rate)).await;
        assert_eq!(status, 400, "{rate}: {refused}");
    }
}

/// A tenth of a second of silence as a WAV file.
fn silence() -> Vec<u8> {
    silence_at(16_000)
}

/// Silence with this sample rate in the header.
fn silence_at(rate: u32) -> Vec<u8> {
    let samples = vec![0u8; 3_200];
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + samples.len() as u32).to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    wav.extend(rate.to_le_bytes());
    wav.extend(32_000u32.to_le_bytes());
    wav.extend(b"\x02\0\x10\0data");
    wav.extend((samples.len() as u32).to_le_bytes());
    wav.extend(samples);
    wav
}
