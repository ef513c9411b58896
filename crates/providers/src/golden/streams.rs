//! Tests of streamed answers, split at any position.

use std::fmt::Write as _;
use std::path::PathBuf;

use quintet_kernel::model::{Chunk, ModelResponse};

use super::{check, families, path};
use crate::decoder::Decoder;
use crate::family::Family;
use crate::retry::AttemptError;

/// Everything that is parsed from an answer.
pub(super) fn read(family: &dyn Family, reads: &[&[u8]]) -> (Vec<Chunk>, Option<AttemptError>) {
    let mut decoder = Decoder::stream(family.answer_parser());
    let mut chunks = Vec::new();
    for bytes in reads {
        if let Err(error) = decoder.feed(bytes, &mut chunks) {
            return (chunks, Some(error));
        }
        if decoder.is_done() {
            break;
        }
    }
    let error = decoder.end(&mut chunks).err();
    (chunks, error)
}

/// The streams of a family.
pub(super) fn files(family: &str) -> Vec<PathBuf> {
    let entries = path(family).read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "sse")).collect();
    files.sort();
    files
}

#[test]
fn streams_are_parsed() {
    for (name, family) in families() {
        assert!(files(name).len() >= 5, "{name} has too few streams");
        for file in files(name) {
            let bytes = std::fs::read(&file).unwrap();
            let (chunks, error) = read(family, &[&bytes]);
            check(&file.with_extension("txt"), &show(&chunks, error.as_ref()));
        }
    }
}

#[test]
fn reads_may_end_anywhere() {
    for (name, family) in families() {
        for file in files(name) {
            let bytes = std::fs::read(&file).unwrap();
            let whole = format!("{:?}", read(family, &[&bytes]));
            for at in 0..bytes.len() {
                let (left, right) = bytes.split_at(at);
                assert_eq!(format!("{:?}", read(family, &[left, right])), whole, "{at}");
            }
            let single: Vec<_> = bytes.chunks(1).collect();
            assert_eq!(format!("{:?}", read(family, &single)), whole);
        }
    }
}

#[test]
fn garbage_never_panics() {
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap()
    };
    for (name, family) in families() {
        for file in files(name) {
            let golden = std::fs::read(&file).unwrap();
            for round in 0..200 {
                let mut bytes = golden.clone();
                for _ in 0..1 + round % 8 {
                    let at = random() % bytes.len();
                    bytes[at] = u8::try_from(random() % 256).unwrap();
                }
                bytes.truncate(random() % bytes.len());
                let reads: Vec<_> = bytes.chunks(1 + random() % 64).collect();
                read(family, &reads);
            }
        }
    }
}

fn show(chunks: &[Chunk], error: Option<&AttemptError>) -> String {
    let mut text = String::new();
    for chunk in chunks {
        match chunk {
            Chunk::Output(channel, said) => writeln!(text, "{channel:?} {said:?}").unwrap(),
            Chunk::Finished(answer) => text.push_str(&ending(answer)),
            Chunk::Retrying { .. } => panic!("a stream does not retry"),
        }
    }
    if let Some(AttemptError { failure, retry }) = error {
        let kind = failure.kind.name();
        writeln!(text, "failed {kind}, {retry:?}: {}", failure.message).unwrap();
    }
    text
}

fn ending(answer: &ModelResponse) -> String {
    let mut text = format!("finished {:?}\n", answer.finish);
    for call in &answer.calls {
        writeln!(text, "call {:?} {} {}", call.id, call.tool, call.arguments).unwrap();
    }
    for sealed in &answer.sealed {
        writeln!(text, "sealed {:?} {}", sealed.place, sealed.content).unwrap();
    }
    let usage = answer.usage;
    writeln!(
        text,
        "read {} (cached {}, into the cache {}), wrote {} (thought {})",
        usage.input, usage.cached, usage.cache_written, usage.output, usage.reasoning
    )
    .unwrap();
    text
}
