//! Tests of senses on the command line.

use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

use crate::daemon::quintet;

/// The program with the user's own weights, which are downloaded once and not for every clone.
fn with_weights(arguments: &[&str]) -> Command {
    let mut command = quintet(arguments);
    command.env_remove("QUINTET_LOCAL_MODELS_DIR");
    command
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[track_caller]
fn refused(output: Output) -> String {
    assert!(!output.status.success());
    text(output.stderr)
}

#[test]
fn texts_are_embedded_and_pictures_read() {
    let pulled = with_weights(&["models", "pull", "senses"]).output().unwrap();
    assert!(pulled.status.success(), "{}", text(pulled.stderr));
    let listed = text(with_weights(&["models"]).output().unwrap().stdout);
    let line = listed.lines().find(|line| line.starts_with("ocr ")).unwrap();
    assert!(line.ends_with("local   PP-OCRv6 small (Apache-2.0), 32 MB"), "{line}");

    let embedded = with_weights(&["embed", "a cat", "a kitten", "tax law"]).output().unwrap();
    let rows = text(embedded.stdout);
    let rows = rows.lines().map(|line| serde_json::from_str::<Vec<f64>>(line).unwrap());
    let rows: Vec<Vec<f64>> = rows.collect();
    let cosine =
        |a: usize, b: usize| -> f64 { rows[a].iter().zip(&rows[b]).map(|(a, b)| a * b).sum() };
    assert!(rows.len() == 3 && rows.iter().all(|row| row.len() == 384));
    assert!(cosine(0, 1) > cosine(0, 2) + 0.3, "{} {}", cosine(0, 1), cosine(0, 2));

    let picture = concat!(env!("CARGO_MANIFEST_DIR"), "/../senses/tests/it/screens/quarter.png");
    let read = text(with_weights(&["ocr", picture]).output().unwrap().stdout);
    assert!(read.lines().any(|line| line == "Inspection report"), "{read}");
    let read = with_weights(&["ocr", picture, "--json"]).output().unwrap();
    let read: Value = serde_json::from_slice(&read.stdout).unwrap();
    assert_eq!((&read["width"], &read["height"]), (&300.into(), &420.into()));
    let line = &read["lines"][0];
    let bounds = ["x", "y", "width", "height"].map(|key| line[key].as_u64().unwrap());
    assert!(line["confidence"].as_f64().unwrap() > 0.5 && bounds[3] > bounds[2], "{line}");
}

#[test]
fn errors_name_what_is_missing_off_or_invalid() {
    let home = TempDir::new().unwrap();
    let dir = format!("--set=local.models_dir={}", home.path().display());
    let file = home.path().join("a.png");
    std::fs::write(&file, "no picture").unwrap();
    let file = file.to_str().unwrap();
    let missing = refused(quintet(&["embed", "a", &dir]).output().unwrap());
    assert_eq!(missing, "quintet: the weights are missing: run `quintet models pull embeddings`\n");
    let missing = refused(quintet(&["ocr", file, &dir]).output().unwrap());
    assert_eq!(missing, "quintet: the weights are missing: run `quintet models pull ocr`\n");
    let off = quintet(&["ocr", file, "--set=senses.ocr=off"]).output().unwrap();
    assert_eq!(refused(off), "quintet: not configured: set `senses.ocr`\n");
    let bad = refused(with_weights(&["ocr", file]).output().unwrap());
    assert!(bad.ends_with("a.png: not an image: PNG, JPEG, WebP and GIF are known\n"), "{bad}");
    for (setting, reason) in [
        ("senses.ocr=maybe", "senses.ocr must be one of [\"local\", \"off\"], not \"maybe\""),
        ("senses.embeddings=what", "or provider/model, not \"what\""),
        ("senses.embeddings=nobody/x", "which is not configured as a provider"),
        ("senses.embeddings=remote-http", "needs senses.embedding_url and senses.embedding_key"),
        ("senses.transcription=nova", "needs senses.nova_url"),
        ("senses.transcription=x", "must be \"local\", \"off\", \"nova\" or provider/model"),
        ("senses.realtime_session_model=a b", "must be the name of a model, not \"a b\""),
        ("senses.vision=x", "senses.vision must be \"off\" or provider/model"),
    ] {
        let error = refused(quintet(&["embed", "a", "--set", setting]).output().unwrap());
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn the_doctor_checks_senses() {
    let home = TempDir::new().unwrap();
    let dir = format!("--set=local.models_dir={}", home.path().display());
    let data = format!("--data-dir={}", home.path().join("data").display());
    let doctor = |more: &[&str]| {
        let arguments = [&["doctor", dir.as_str(), data.as_str()], more].concat();
        text(quintet(&arguments).output().unwrap().stdout)
    };
    let output = doctor(&[]);
    assert!(
        output.contains("warn  embeddings     the weights of all-MiniLM-L6-v2 are not downloaded"),
        "{output}"
    );
    assert!(output.contains("-> quintet models pull ocr"), "{output}");
    let output = doctor(&["--set=senses.ocr=off", "--set=senses.embeddings=off"]);
    assert!(output.contains("ok    ocr            off (senses.ocr)"), "{output}");
    assert!(output.contains("ok    embeddings     off (senses.embeddings)"), "{output}");
}
