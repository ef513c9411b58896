//! Rows, ids and messages are those that clients of the original know.

use super::*;

fn line(text: &str, x: u32, y: u32) -> TextBox {
    TextBox { text: text.into(), confidence: 0.5, x, y, width: 11, height: 4 }
}

#[test]
fn ids_are_those_of_the_original() {
    // hashlib.sha1(b"shot.png|1|s\xc3\xa4ve|3|4|11|4").hexdigest()[:12]
    let rows = rows("shot.png", vec![line("x", 1, 2), line("\u{1c} SÄVE ", 3, 4)]);
    assert_eq!(rows[1].candidate_id, "ocr_a667d790a9e0");
    assert_eq!(rows[1].area.center(), (8, 6));
}

#[test]
fn what_a_model_may_not_say_is_put_right() {
    let strange = TextBox { confidence: f32::NAN, width: 0, height: 0, ..line("x", 1, 2) };
    let row = &rows("shot.png", vec![strange])[0];
    assert_eq!((row.confidence, row.area.width, row.area.height), (0.0, 1, 1));
}

#[test]
fn of_rows_that_fit_equally_the_first_comes_first() {
    let rows = rows("s", vec![line("cancel", 0, 0), line("Save", 1, 0), line(" save", 2, 0)]);
    let order: Vec<usize> = ranked("save", &rows).iter().map(|row| row.index).collect();
    assert_eq!(order, [1, 2, 0]);
}

#[test]
fn at_most_eight_are_offered() {
    let rows = rows("s", (0..10).map(|n| line("Save", n, 0)).collect());
    let ranked = ranked("save", &rows);
    let error = resolve(("save", 0.8), &ranked, "s").unwrap_err();
    assert_eq!(error.reason, Reason::Ambiguous);
    assert!(
        error.message.starts_with(
            "Multiple OCR instances matched 'save' above threshold 0.80: Save [candidate_id=ocr_"
        ),
        "{}",
        error.message
    );
    assert!(error.message.ends_with(", score=1.00), +2 more"), "{}", error.message);
    let payload = error.payload.unwrap();
    assert_eq!(payload["candidates"].as_array().unwrap().len(), 8);
}
