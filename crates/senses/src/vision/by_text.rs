//! Vision without a vision model, based on the text in a picture.

use std::fmt::Write as _;
use std::sync::Arc;

use quintet_kernel::port::{
    BoxFuture, Ocr, RecognizedText, SenseError, TextBox, Vision, VisionResult, VisualTarget,
};
use quintet_kernel::similarity::{normalized, ratio};

/// The model name in answers.
const MODEL: &str = "ocr";
/// Minimum similarity of a line and a quoted text.
const SIMILARITY_THRESHOLD: f64 = 0.8;
/// Maximum number of lines in a description.
const LINES_LIMIT: usize = 200;

const NO_MODEL: &str = "no vision model is configured (`senses.vision`), so only text can be found: \
    quote the text to find, for example: the button \"Save\"";

/// Describes pictures by their text, and finds places if a description quotes text.
pub struct OcrVision {
    ocr: Arc<dyn Ocr>,
}

impl OcrVision {
    /// Vision based on this OCR.
    pub fn new(ocr: Arc<dyn Ocr>) -> Self {
        Self { ocr }
    }
}

impl std::fmt::Debug for OcrVision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OcrVision")
    }
}

impl Vision for OcrVision {
    fn ready(&self) -> Result<(), SenseError> {
        self.ocr.ready().map_err(|error| match error {
            // The setting to change is the one for vision.
            SenseError::Off(_) => SenseError::Off("vision"),
            error => error,
        })
    }

    fn locate(
        &self,
        image: Vec<u8>,
        description: String,
        limit: usize,
    ) -> BoxFuture<'_, Result<VisionResult<Vec<VisualTarget>>, SenseError>> {
        Box::pin(async move {
            let quoted = quotations(&description);
            if quoted.is_empty() {
                return Err(SenseError::BadInput(NO_MODEL.into()));
            }
            let read = self.ocr.read(image).await?;
            let mut value = matching_lines(&quoted, &read.lines);
            value.truncate(limit);
            Ok(VisionResult { value, model: MODEL.into() })
        })
    }

    fn describe(&self, image: Vec<u8>) -> BoxFuture<'_, Result<VisionResult<String>, SenseError>> {
        Box::pin(async move {
            let read = self.ocr.read(image).await?;
            Ok(VisionResult { value: described(&read), model: MODEL.into() })
        })
    }
}

/// The lines that are similar to one of the texts, the most similar first.
fn matching_lines(quoted: &[String], lines: &[TextBox]) -> Vec<VisualTarget> {
    let scored = |line: &TextBox| {
        let text = normalized(&line.text);
        let scores = quoted.iter().map(|quoted| ratio(&normalized(quoted), &text));
        scores.fold(0.0, f64::max)
    };
    let mut matching_lines: Vec<(f64, &TextBox)> = lines
        .iter()
        .map(|line| (scored(line), line))
        .filter(|(score, _)| *score >= SIMILARITY_THRESHOLD)
        .collect();
    matching_lines.sort_by(|one, other| other.0.total_cmp(&one.0));
    let target = |(score, line): (f64, &TextBox)| VisualTarget {
        x: line.x.saturating_add(line.width / 2),
        y: line.y.saturating_add(line.height / 2),
        label: Some(line.text.clone()),
        #[expect(clippy::cast_possible_truncation, reason = "a score needs few digits")]
        confidence: Some(score as f32),
    };
    matching_lines.into_iter().map(target).collect()
}

/// The texts that a description quotes.
fn quotations(description: &str) -> Vec<String> {
    const MARKS: [(char, char); 6] = [
        ('"', '"'),
        ('\u{201c}', '\u{201d}'),
        ('\u{ab}', '\u{bb}'),
        ('`', '`'),
        ('\u{2018}', '\u{2019}'),
        ('\'', '\''),
    ];
    let mut quoted = Vec::new();
    let mut rest = description;
    while let Some(at) = rest.find(|c| MARKS.iter().any(|(open, _)| *open == c)) {
        let open = rest[at..].chars().next().unwrap_or_default();
        let close = MARKS.iter().find(|(mark, _)| *mark == open).map_or(open, |(_, close)| *close);
        // The apostrophe of "user's" opens no quotation.
        let within_word = rest[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        rest = &rest[at + open.len_utf8()..];
        if open == '\'' && within_word {
            continue;
        }
        if let Some(end) = rest.find(close) {
            quoted.push(rest[..end].trim().to_owned());
            rest = &rest[end + close.len_utf8()..];
        }
    }
    quoted.retain(|text| !text.is_empty());
    quoted
}

fn described(read: &RecognizedText) -> String {
    let mut text = format!(
        "No vision model is configured, so this is only what OCR read. The picture is {} by {} pixels.",
        read.width, read.height
    );
    if read.lines.is_empty() {
        text.push_str(" No text was found on it.");
        return text;
    }
    let _infallible = write!(text, " It has {} lines of text:", read.lines.len());
    for line in read.lines.iter().take(LINES_LIMIT) {
        let (x, y) =
            (line.x.saturating_add(line.width / 2), line.y.saturating_add(line.height / 2));
        let _infallible = write!(text, "\n- {:?} at ({x}, {y})", line.text);
    }
    if read.lines.len() > LINES_LIMIT {
        let _infallible = write!(text, "\n[{} more lines]", read.lines.len() - LINES_LIMIT);
    }
    text
}

#[cfg(test)]
mod tests;
