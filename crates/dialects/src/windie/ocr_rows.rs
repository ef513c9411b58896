//! Lines of text in a picture: their ids, how well they match a query, and which one a query means.
//!
//! Ids, scores and messages are those of the original, so that an id from one answer is valid for the next
//! request about the same picture.

use quintet_kernel::port::TextBox;
use quintet_kernel::similarity::{normalized, ratio, stripped};
use serde::Serialize;
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

/// The score from which a line matches a query, unless the query has its own threshold.
pub(super) const THRESHOLD: f64 = 0.8;
/// The most candidates in an error.
const CANDIDATES_LIMIT: usize = 8;

/// A line of text on a picture.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TextRow {
    pub(super) index: usize,
    pub(super) text: String,
    pub(super) confidence: f64,
    pub(super) area: Area,
    pub(super) candidate_id: String,
    /// The similarity to the query, if there is one.
    pub(super) score: Option<f64>,
}

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Area {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) width: u32,
    pub(super) height: u32,
}

impl Area {
    pub(super) fn center(self) -> (u32, u32) {
        (self.x.saturating_add(self.width / 2), self.y.saturating_add(self.height / 2))
    }
}

impl TextRow {
    /// The row in answers.
    pub(super) fn shown(&self) -> Value {
        let (x, y) = self.area.center();
        json!({
            "id": self.index.to_string(),
            "text": self.text,
            "confidence": self.confidence,
            "bbox": self.area,
            "center": { "x": x, "y": y },
            "candidate_id": self.candidate_id,
            "score": self.score,
        })
    }

    /// True if the row's score is at least the threshold.
    pub(super) fn fits(&self, threshold: f64) -> bool {
        self.score.is_some_and(|score| score >= threshold)
    }

    fn candidate(&self) -> Value {
        let (x, y) = self.area.center();
        json!({
            "candidate_id": self.candidate_id,
            "text": stripped(&self.text),
            "score": rounded(self.score.unwrap_or_default()),
            "x": x,
            "y": y,
        })
    }

    fn in_words(&self) -> String {
        let ((x, y), score) = (self.area.center(), self.score.unwrap_or_default());
        let text = Some(stripped(&self.text)).filter(|text| !text.is_empty()).unwrap_or("<empty>");
        format!("{text} [candidate_id={}] ({x}, {y}, score={score:.2})", self.candidate_id)
    }
}

/// The rows of a picture, whose id is part of theirs.
pub(super) fn rows(source_id: &str, lines: Vec<TextBox>) -> Vec<TextRow> {
    lines.into_iter().enumerate().map(|(index, line)| row(source_id, index, line)).collect()
}

fn row(source_id: &str, index: usize, line: TextBox) -> TextRow {
    let (x, y) = (line.x, line.y);
    let area = Area { x, y, width: line.width.max(1), height: line.height.max(1) };
    let text = stripped(&line.text).to_lowercase();
    let Area { width, height, .. } = area;
    let named = format!("{source_id}|{index}|{text}|{x}|{y}|{width}|{height}");
    let digest = hex::encode(Sha1::digest(named));
    let confidence = if line.confidence.is_finite() { line.confidence.into() } else { 0.0 };
    TextRow {
        index,
        text: line.text,
        confidence: rounded(confidence),
        area,
        candidate_id: format!("ocr_{}", &digest[..12]),
        score: None,
    }
}

/// All rows with their scores, the best first. Takes time that grows with the length of the texts, so it must
/// not run on an async thread.
pub(super) fn ranked(query: &str, rows: &[TextRow]) -> Vec<TextRow> {
    let query = normalized(query);
    let scored = |row: &TextRow| TextRow {
        score: Some(ratio(&query, &normalized(&row.text))),
        ..row.clone()
    };
    let mut ranked: Vec<TextRow> = rows.iter().map(scored).collect();
    ranked.sort_by(|one, other| other.score.unwrap_or(0.0).total_cmp(&one.score.unwrap_or(0.0)));
    ranked
}

/// The reason why a query has no unique match.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unresolved {
    pub(super) reason: Reason,
    pub(super) message: String,
    /// The candidates, for programs.
    pub(super) payload: Option<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// No row matches.
    Missing,
    /// Several rows match.
    Ambiguous,
}

impl Unresolved {
    /// The error as the `detail` of an answer.
    pub(super) fn detail(&self) -> Value {
        let mut detail = json!({ "message": self.message });
        if let Some(payload) = &self.payload {
            detail["resolver_payload"] = payload.clone();
        }
        detail
    }
}

/// The only row that matches a query, of those ranked for it.
pub(super) fn resolve<'a>(
    (query, threshold): (&str, f64),
    ranked: &'a [TextRow],
    source_id: &str,
) -> Result<&'a TextRow, Unresolved> {
    let best = ranked.first().ok_or_else(|| Unresolved {
        reason: Reason::Missing,
        message: "OCR results are empty".into(),
        payload: None,
    })?;
    let fitting = ranked.iter().take_while(|row| row.fits(threshold)).count();
    match fitting {
        1 => Ok(best),
        0 => {
            let score = best.score.unwrap_or_default();
            Err(Unresolved {
                reason: Reason::Missing,
                message: format!(
                    "Could not find text '{query}' on screen (best match: {score:.2})"
                ),
                payload: Some(payload(ranked, source_id)),
            })
        }
        _ => Err(Unresolved {
            reason: Reason::Ambiguous,
            message: format!(
                "Multiple OCR instances matched '{query}' above threshold {threshold:.2}: {}",
                listed(&ranked[..fitting])
            ),
            payload: Some(payload(&ranked[..fitting], source_id)),
        }),
    }
}

fn listed(rows: &[TextRow]) -> String {
    let mut listed: Vec<String> =
        rows.iter().take(CANDIDATES_LIMIT).map(TextRow::in_words).collect();
    if rows.len() > CANDIDATES_LIMIT {
        listed.push(format!("+{} more", rows.len() - CANDIDATES_LIMIT));
    }
    listed.join(", ")
}

fn payload(rows: &[TextRow], source_id: &str) -> Value {
    let candidates: Vec<Value> =
        rows.iter().take(CANDIDATES_LIMIT).map(TextRow::candidate).collect();
    json!({
        "retry_tool": "mouse_control",
        "retry_method": "ocr_candidate",
        "screenshot_id": source_id,
        "candidates": candidates,
    })
}

/// A number with four decimals, rounded as its decimal digits say.
fn rounded(number: f64) -> f64 {
    format!("{number:.4}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests;
