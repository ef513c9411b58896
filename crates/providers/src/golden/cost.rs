//! Measures the cost of parsing an answer: `make bench-decode` prints it.

use std::time::Instant;

use quintet_kernel::model::Chunk;

use super::{families, path};
use crate::decoder::Decoder;

/// Bytes of a network read under load.
const READ_BYTES: usize = 16 * 1024;
const DELTAS_PER_ROUND: u64 = 1_000_000;
const ROUNDS: usize = 5;

/// A million words of an answer as received: the events before the first word, then the same event
/// again and again, numbered if the family numbers its events.
fn wire(family: &str) -> Vec<u8> {
    let text = std::fs::read_to_string(path(family).join("text.sse")).unwrap();
    let word = text.find("dich").unwrap();
    let start = text[..word].rfind("\n\n").unwrap() + 2;
    let end = word + text[word..].find("\n\n").unwrap() + 2;
    // Most words need no unescaping.
    let (before, frame) = (&text[..start], &text[start..end]);
    let frame = frame.replace(r#", \"dich\"\n"#, " word").replace(r#", \"dich\""#, " word");
    let number = frame.find("\"sequence_number\":").map(|at| {
        let from = at + "\"sequence_number\":".len();
        (from, from + frame[from..].find(',').unwrap())
    });
    let mut wire = before.to_owned();
    for n in 0..DELTAS_PER_ROUND {
        match number {
            Some((from, to)) => wire.extend([&frame[..from], &n.to_string(), &frame[to..]]),
            None => wire.push_str(&frame),
        }
    }
    wire.into_bytes()
}

#[test]
#[ignore = "measures, and is not for every run"]
fn decode_cost() {
    for (name, family) in families() {
        let wire = wire(name);
        let mut rounds: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let (mut decoder, mut chunks) =
                    (Decoder::stream(family.answer_parser()), Vec::new());
                let mut words = 0;
                #[expect(clippy::disallowed_methods, reason = "this measures time")]
                let start = Instant::now();
                for read in wire.chunks(READ_BYTES) {
                    decoder
                        .feed(read, &mut chunks)
                        .map_err(|_| "the answer can be parsed")
                        .unwrap();
                    words += chunks.drain(..).map(|chunk| written(&chunk)).sum::<usize>();
                }
                assert!(words as u64 >= DELTAS_PER_ROUND * 4, "{words} bytes were parsed");
                start.elapsed().as_secs_f64()
            })
            .collect();
        rounds.sort_by(f64::total_cmp);
        let (median, bytes) = (rounds[ROUNDS / 2], wire.len() as f64);
        let (least, most) = (rounds[0], rounds[ROUNDS - 1]);
        println!(
            "{name:<17} {median:.3} s ({least:.3} to {most:.3}) for a million deltas, {:.0} MB/s",
            bytes / median / 1e6
        );
    }
}

fn written(chunk: &Chunk) -> usize {
    match chunk {
        Chunk::Output(_, text) => text.len(),
        Chunk::Retrying { .. } | Chunk::Finished(_) => 0,
    }
}
