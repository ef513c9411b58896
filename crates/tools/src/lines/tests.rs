//! Windows over small texts.

use std::io::BufReader;

use super::*;

fn window(text: &[u8], first: u64, last: Option<u64>) -> Result<String, String> {
    // A small buffer shows whether anything depends on where it ends.
    let reader = BufReader::with_capacity(7, text);
    let range = Range { first, last };
    read(reader, text.len() as u64, range, || true).map_err(|error| error.to_string())
}

#[track_caller]
fn check(text: &str, lines: (u64, Option<u64>), expected: &str) {
    let got =
        window(text.as_bytes(), lines.0, lines.1).unwrap_or_else(|error| format!("! {error}"));
    assert_eq!(got, expected, "{text:?} {lines:?}");
}

#[test]
fn lines_are_counted_from_one_and_both_ends_are_in() {
    check("a\nb\nc\n", (1, None), "a\nb\nc\n");
    check("a\nb\nc", (2, None), "b\nc");
    check("a\nb\nc\n", (3, Some(9)), "c\n");
    check(
        "a\nb\nc\n",
        (0, Some(1)),
        "a\n[lines 1 to 1; 4 more bytes follow; go on with start_line 2]",
    );
    check(
        "a\nb\nc\n",
        (2, Some(2)),
        "b\n[lines 2 to 2; 2 more bytes follow; go on with start_line 3]",
    );
    check("", (1, None), "");
}

#[test]
fn a_range_that_makes_no_sense_is_named() {
    check("a\nb\n", (3, Some(2)), "! end_line 2 is before start_line 3");
    check("a\nb\n", (3, None), "! start_line 3 is after the end: the file has 2 lines");
    check("a\nb", (9, None), "! start_line 9 is after the end: the file has 2 lines");
    check("", (2, None), "! start_line 2 is after the end: the file has 0 lines");
    check(
        "a\n",
        (u64::MAX, None),
        "! start_line 18446744073709551615 is after the end: the file has 1 lines",
    );
}

#[test]
fn four_hundred_lines_are_enough() {
    let text = "x\n".repeat(1000);
    let note = "[lines 1 to 400; 1200 more bytes follow; go on with start_line 401]";
    check(&text, (1, None), &format!("{}{note}", "x\n".repeat(400)));
    check(&text, (1, Some(900)), &format!("{}{note}", "x\n".repeat(400)));
    check(&text, (601, None), &"x\n".repeat(400));
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let text = "€".repeat(MOST_BYTES);
    let shown = MOST_BYTES / 3;
    let left = text.len() - shown * 3;
    let note = format!("\n[lines 1 to 1; {left} more bytes follow; line 1 is cut]");
    check(&text, (1, None), &format!("{}{note}", "€".repeat(shown)));
}

#[test]
fn bytes_that_just_fit_are_not_cut() {
    let text = format!("{}\n", "x".repeat(MOST_BYTES - 1));
    check(&text, (1, None), &text);
    let more = format!("{text}y\n");
    let note = "[lines 1 to 1; 2 more bytes follow; go on with start_line 2]";
    check(&more, (1, None), &format!("{text}{note}"));
}

#[test]
fn what_is_not_text_is_refused_wherever_it_shows() {
    check("a\0b", (1, None), "! binary file: only text can be read");
    check("line\nline\nline\n\0\n", (4, None), "! binary file: only text can be read");
    assert_eq!(window(b"caf\xe9\n", 1, None).as_deref(), Ok("caf\u{fffd}\n"));
}

#[test]
fn a_cancelled_read_stops() {
    let range = Range { first: 3, last: None };
    assert!(matches!(read(&b"a\nb\nc"[..], 5, range, || false), Err(LinesError::Cancelled)));
}
