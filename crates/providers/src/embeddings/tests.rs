//! Tests of requests to embedding services and of their answers.

use quintet_kernel::port::{Embedder as _, SenseError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::HttpEmbedder;
use super::wire::{Answer, Service};
use crate::config::{Api, ProviderConfig, Secret};

const OPENAI: Service = Service::OpenAi { dimensions: None };

#[test]
fn requests_match_the_apis() {
    let texts = ["a".to_owned(), "b".to_owned()];
    let text = |service: Service| String::from_utf8(service.body("m", &texts)).unwrap();
    assert_eq!(text(OPENAI), r#"{"model":"m","input":["a","b"]}"#);
    let short = Service::OpenAi { dimensions: Some(256) };
    assert_eq!(text(short), r#"{"model":"m","input":["a","b"],"dimensions":256}"#);
    assert_eq!(text(Service::Internal), r#"{"texts":["a","b"]}"#);
}

#[test]
fn texts_are_shortened_and_batched_by_the_limits() {
    assert_eq!(Service::Internal.fit(String::new()), " ");
    assert_eq!(Service::Internal.fit("ä".repeat(9000)).chars().count(), 8192);
    let long = vec!["x".repeat(8192); 9];
    assert_eq!(Service::Internal.batch_length(&long), 8);
    assert_eq!(Service::Internal.batch_length(&vec!["x".to_owned(); 300]), 256);
    assert_eq!(OPENAI.batch_length(&["x".repeat(400_000)]), 1);
}

#[test]
fn answers_are_checked_and_normalised() {
    let body = br#"{"data":[{"index":1,"embedding":[0,2]},{"index":0,"embedding":[3,4]}]}"#;
    let vectors = vec![vec![0.6, 0.8], vec![0.0, 1.0]];
    let answer = Answer { vectors, queue_wait_ms: None, service_time_ms: None };
    assert_eq!(OPENAI.answer(body, 2, 2), Ok(answer));
    for (bad, reason) in [
        (&b"{}"[..], "missing field"),
        (br#"{"data":[]}"#, "0 of 2 vectors"),
        (br#"{"data":[{"embedding":[1]},{"embedding":[1]}]}"#, "1 dimensions instead of 2"),
        (br#"{"data":[{"embedding":[0,0]},{"embedding":[1,0]}]}"#, "invalid numbers"),
    ] {
        let error = OPENAI.answer(bad, 2, 2).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    let body = br#"{"embeddings":[[1,0]],"queue_wait_ms":0.5,"service_time_ms":12.5,"x":1}"#;
    let answer = Service::Internal.answer(body, 1, 2).unwrap();
    assert_eq!((answer.queue_wait_ms, answer.service_time_ms), (Some(0.5), Some(12.5)));
}

/// Answers one request and returns it.
async fn exchange(
    embedder: impl FnOnce(String) -> HttpEmbedder,
    status: &str,
    body: &str,
) -> (String, Result<Vec<Vec<f32>>, SenseError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let embedder = embedder(format!("http://{}", listener.local_addr().unwrap()));
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let read = stream.read(&mut request).await.unwrap();
        stream.write_all(answer.as_bytes()).await.unwrap();
        String::from_utf8_lossy(&request[..read]).to_lowercase()
    };
    let (request, answer) = tokio::join!(serve, embedder.embed(vec!["hi".into()]));
    (request, answer.map(|answer| answer.vectors))
}

fn provider(address: String) -> HttpEmbedder {
    let mut config = ProviderConfig::new("p", Api::OpenAiChat);
    config.base_url = format!("{address}/v1");
    config.api_key = Some(Secret::new("sk-secret-secret"));
    HttpEmbedder::provider(&config, "m", 2, false)
}

#[tokio::test]
async fn a_provider_receives_its_key_and_returns_vectors() {
    let (request, answer) = exchange(provider, "200 OK", r#"{"data":[{"embedding":[0,5]}]}"#).await;
    assert!(request.starts_with("post /v1/embeddings "), "{request}");
    assert!(request.contains("authorization: bearer sk-secret-secret"), "{request}");
    assert_eq!(answer, Ok(vec![vec![0.0, 1.0]]));
}

#[tokio::test]
async fn another_daemon_receives_the_header_of_its_service() {
    let service = |address: String| HttpEmbedder::service(&address, Secret::new("k"));
    let (request, answer) =
        exchange(service, "503 Service Unavailable", r#"{"detail":"no"}"#).await;
    assert!(request.starts_with("post /embed "), "{request}");
    assert!(request.contains("x-windie-embedding-key: k"), "{request}");
    let reason = "the embedding service answered 503 Service Unavailable: {\"detail\":\"no\"}";
    assert_eq!(answer, Err(SenseError::Failed(reason.into())));
}

#[tokio::test]
async fn refusals_do_not_show_the_key() {
    let body = "bad key sk-secret-secret";
    let (_, answer) = exchange(provider, "401 Unauthorized", body).await;
    assert!(!answer.unwrap_err().to_string().contains("secret-secret"));
    let (_, answer) = exchange(provider, "429 Too Many Requests", "").await;
    assert_eq!(answer, Err(SenseError::Busy));
}
