//! Text in pictures: all of it, the lines that match a query, and the one line that a query means.

use axum::Json;
use serde_json::{Value, json};

use super::perception::drawing::{BOX_COLOR, Mark, MarkShape};
use super::perception::source::{ImageInput, Source};
use super::perception::{Perception, keep_overlay, off_thread};
use super::reply::{Reply, unavailable};
use super::{Body, JsonReply};
use crate::windie::fields::Object;
use crate::windie::ocr_rows::{Reason, THRESHOLD, TextRow, Unresolved, ranked, resolve, rows};

const TEXT_LIMIT: usize = 2000;
const CANDIDATE_LIMIT: usize = 128;
const RESULTS_LIMIT: i64 = 100;
/// The number of results if a request names none.
const DEFAULT_RESULTS: i64 = 10;
const NO_CANDIDATE: &str = "OCR candidate not found for the provided image";

/// The common members of requests about text on a picture.
struct TextQuery {
    image: ImageInput,
    threshold: f64,
    max_results: usize,
    show_labels: bool,
}

impl TextQuery {
    fn of(body: &Object<'_>) -> Self {
        let image = ImageInput::of(body);
        let results = body.not_null("max_results").whole(1..=RESULTS_LIMIT);
        Self {
            image,
            threshold: body.not_null("threshold").number(0.0..=1.0).unwrap_or(THRESHOLD),
            max_results: usize::try_from(results.unwrap_or(DEFAULT_RESULTS)).unwrap_or_default(),
            show_labels: body.not_null("show_labels").flag().unwrap_or(true),
        }
    }

    /// Reads a request with a text to search.
    fn with_text(body: &Object<'_>) -> (Self, String) {
        (Self::of(body), body.needed_text("text", 1..=TEXT_LIMIT))
    }
}

/// `POST /api/sdk/ocr/run`.
pub(super) async fn run(context: Perception, body: Body) -> JsonReply {
    let (source, rows) = read_rows(&context, body.read(ImageInput::of)?).await?;
    Ok(Json(json!({ "image": source.metadata(), "results": shown(&rows) })))
}

/// `POST /api/sdk/ocr/find-text`: the rows with a score of at least the threshold.
pub(super) async fn find_text(context: Perception, body: Body) -> JsonReply {
    find(&context, body, |row, threshold| row.fits(threshold)).await
}

/// `POST /api/sdk/ocr/find-text-candidates`: the rows with the best scores.
pub(super) async fn find_candidates(context: Perception, body: Body) -> JsonReply {
    find(&context, body, |_, _| true).await
}

async fn find(context: &Perception, body: Body, is_match: fn(&TextRow, f64) -> bool) -> JsonReply {
    let (query, text) = body.read(TextQuery::with_text)?;
    let (source, rows) = read_rows(context, query.image).await?;
    let mut matches = rank(&text, rows).await?;
    matches.retain(|row| is_match(row, query.threshold));
    matches.truncate(query.max_results);
    Ok(Json(json!({
        "image": source.metadata(),
        "query": text,
        "threshold": query.threshold,
        "matches": shown(&matches),
    })))
}

/// `POST /api/sdk/ocr/resolve-text`: the only row that matches.
pub(super) async fn resolve_text(context: Perception, body: Body) -> JsonReply {
    let (TextQuery { image, threshold, .. }, text) = body.read(TextQuery::with_text)?;
    let (source, rows) = read_rows(&context, image).await?;
    let ranked = rank(&text, rows).await?;
    let row = resolve((&text, threshold), &ranked, &source.id)
        .map_err(|error| Reply::detailed(status(&error), error.detail()))?;
    Ok(Json(json!({
        "image": source.metadata(),
        "query": text,
        "threshold": threshold,
        "match": row.shown(),
    })))
}

/// `POST /api/sdk/ocr/resolve-candidate`: a row that an earlier answer named.
pub(super) async fn resolve_candidate(context: Perception, body: Body) -> JsonReply {
    let (image, id) = body.read(|body| {
        (ImageInput::of(body), body.needed_text("candidate_id", 1..=CANDIDATE_LIMIT))
    })?;
    let (source, rows) = read_rows(&context, image).await?;
    let row = rows.iter().find(|row| row.candidate_id == id);
    let row = row.ok_or_else(|| Reply::new(404, NO_CANDIDATE))?;
    Ok(Json(json!({ "image": source.metadata(), "candidate_id": id, "match": row.shown() })))
}

/// `POST /api/sdk/ocr/inspect`: the answers of the requests above in one.
pub(super) async fn inspect(context: Perception, body: Body) -> JsonReply {
    let (query, text, include_overlay) = body.read(|body| {
        let (query, text) = (TextQuery::of(body), body.text("text", 1..=TEXT_LIMIT));
        (query, text, body.not_null("include_overlay").flag().unwrap_or(false))
    })?;
    let TextQuery { image, threshold, max_results, show_labels } = query;
    let (source, rows) = read_rows(&context, image).await?;
    let ranked = match &text {
        Some(text) => rank(text, rows.clone()).await?,
        None => Vec::new(),
    };
    let resolved =
        text.as_ref().map(|text| resolve((text.as_str(), threshold), &ranked, &source.id));
    let failed = resolved.as_ref().and_then(|resolved| resolved.as_ref().err());
    let best = &ranked[..ranked.len().min(max_results)];
    let accepted: Vec<TextRow> = best.iter().filter(|row| row.fits(threshold)).cloned().collect();
    let mut answer = json!({
        "image": source.metadata(),
        "query": text,
        "threshold": threshold,
        "results": shown(&rows),
        "ranked_matches": shown(best),
        "accepted_matches": shown(&accepted),
        "resolved_match": resolved.as_ref().and_then(|row| row.as_ref().ok()).map(|row| row.shown()),
        "resolution_error":
            failed.map(|error| json!({ "status_code": status(error), "detail": error.detail() })),
        "overlay": null,
    });
    if include_overlay {
        let first = &rows[..rows.len().min(max_results)];
        let marks = marks(if text.is_some() { &accepted } else { first }, show_labels);
        answer["overlay"] = keep_overlay(&context, source, marks).await?;
    }
    Ok(Json(answer))
}

/// `POST /api/sdk/ocr/overlay`: a picture with boxes around rows, as an artifact.
pub(super) async fn overlay(context: Perception, body: Body) -> JsonReply {
    let (query, text, candidate) = body.read(|body| {
        let query = TextQuery::of(body);
        let text = body.text("text", 1..=TEXT_LIMIT);
        let candidate = body.text("candidate_id", 1..=CANDIDATE_LIMIT);
        if text.is_some() && candidate.is_some() {
            let why = "Value error, at most one of text or candidate_id may be given";
            body.fault(&[], "value_error", why);
        }
        (query, text, candidate)
    })?;
    let (source, mut rows) = read_rows(&context, query.image).await?;
    if let Some(candidate) = candidate {
        rows.retain(|row| row.candidate_id == candidate);
        if rows.is_empty() {
            return Err(Reply::new(404, NO_CANDIDATE));
        }
    } else if let Some(text) = text {
        rows = rank(&text, rows).await?;
        rows.retain(|row| row.fits(query.threshold));
    }
    rows.truncate(query.max_results);
    let marks = marks(&rows, query.show_labels);
    Ok(Json(keep_overlay(&context, source, marks).await?))
}

/// Reads the text on a picture.
async fn read_rows(
    context: &Perception,
    image: ImageInput,
) -> Result<(Source, Vec<TextRow>), Reply> {
    let failed = unavailable("OCR service");
    context.senses.ocr.ready().map_err(failed)?;
    let source = Source::load(context, image).await?;
    let read = context.senses.ocr.read(source.bytes.clone()).await.map_err(failed)?;
    let rows = rows(&source.id, read.lines);
    Ok((source, rows))
}

async fn rank(query: &str, rows: Vec<TextRow>) -> Result<Vec<TextRow>, Reply> {
    let query = query.to_owned();
    off_thread(move || ranked(&query, &rows)).await
}

fn shown(rows: &[TextRow]) -> Vec<Value> {
    rows.iter().map(TextRow::shown).collect()
}

fn status(error: &Unresolved) -> u16 {
    match error.reason {
        Reason::Missing => 404,
        Reason::Ambiguous => 409,
    }
}

fn marks(rows: &[TextRow], show_labels: bool) -> Vec<Mark> {
    let mark = |row: &TextRow| {
        let (area, center) = (row.area, row.area.center());
        Mark {
            shape: MarkShape::Box {
                x: area.x.into(),
                y: area.y.into(),
                width: area.width.into(),
                height: area.height.into(),
                center: Some((center.0.into(), center.1.into())),
            },
            color: BOX_COLOR,
            label: show_labels.then(|| format!("{} [{}]", row.text, row.candidate_id)),
        }
    };
    rows.iter().map(mark).collect()
}
