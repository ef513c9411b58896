//! Frames of audio, proper and improper.

use quintet_kernel::port::{Audio, Transcript};
use serde_json::json;

use super::{Control, chunks, frame, transcript};

fn bytes(length: u32, metadata: &str, samples: &[u8]) -> Vec<u8> {
    [&length.to_le_bytes(), metadata.as_bytes(), samples].concat()
}

fn whole(metadata: &str, samples: &[u8]) -> Vec<u8> {
    bytes(metadata.len() as u32, metadata, samples)
}

#[test]
fn a_frame_has_a_rate_and_samples() {
    let read = frame(&whole(r#"{"sampleRate":48000}"#, &[1, 0, 255, 255])).unwrap();
    assert_eq!(read, Audio { samples: vec![1, -1], rate: 48_000 });
    let read = frame(&whole("{}", &[])).unwrap();
    assert_eq!(read, Audio { samples: vec![], rate: 16_000 });
    assert_eq!(frame(&whole(r#"{"sampleRate":44100.0}"#, &[])).unwrap().rate, 44_100);
}

#[test]
fn improper_frames_are_refused() {
    for (bad, why) in [
        (vec![], "shorter than 4 bytes"),
        (vec![1, 0, 0], "shorter than 4 bytes"),
        (bytes(u32::MAX, "{}", &[0; 8]), "its metadata is cut off"),
        (bytes(3, "{}", &[]), "its metadata is cut off"),
        (bytes(0, "", &[0, 0]), "its metadata is no JSON"),
        (whole("{nope", &[]), "its metadata is no JSON"),
        (whole("[]", &[]), "its metadata is no object"),
        (whole(r#"{"sampleRate":"fast"}"#, &[]), "its sample rate is no proper number"),
        (whole(r#"{"sampleRate":-1}"#, &[]), "its sample rate is no proper number"),
        (whole(r#"{"sampleRate":1e12}"#, &[]), "its sample rate is no proper number"),
        (whole("{}", &[1, 2, 3]), "it ends within a sample"),
    ] {
        assert_eq!(frame(&bad), Err(why), "{bad:?}");
    }
}

#[test]
fn controls() {
    let read = |text: &str| serde_json::from_str::<Control>(text).ok();
    assert_eq!(read(r#"{"type":"start_over"}"#), Some(Control::StartOver));
    let langs = r#"{"type":"set_langs","source_language":"en","target_language":"de"}"#;
    assert_eq!(read(langs), Some(Control::SetLangs { source_language: Some("en".into()) }));
    assert_eq!(read(r#"{"type":"set_langs"}"#), Some(Control::SetLangs { source_language: None }));
    assert_eq!(read(r#"{"type":"other"}"#), None);
    assert_eq!(read("nope"), None);
}

#[test]
fn transcripts_and_chunks() {
    let partial = transcript(&Transcript::Partial("a".into()));
    assert_eq!(partial, json!({ "type": "realtime", "text": "a", "is_final": false }));
    assert_eq!(transcript(&Transcript::UtteranceEnd), json!({ "type": "utterance_end" }));
    let audio = Audio { samples: vec![1; 24_001], rate: 24_000 };
    let all: Vec<_> = chunks(&audio).collect();
    assert_eq!(all.len(), 2);
    assert_eq!(all[1], json!({ "audio": "AQA=", "sample_rate": 24_000 }));
}
