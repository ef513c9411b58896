//! Text on pictures: all of it, the lines that fit a query, and the one line that a query means.

use axum::response::Response;
use serde_json::{Value, json};

use super::fields::Fields;
use super::perception::drawing::{BOX_COLOR, Mark, MarkShape};
use super::perception::overlay::keep_overlay;
use super::perception::source::{ImageInput, Source};
use super::perception::{Perception, off_thread};
use super::reply::{Reply, ok};
use super::sense_error::PerceptionService;
use crate::windie::ocr_rows::{Reason, THRESHOLD, TextRow, Unresolved, ranked, resolve, rows};

const TEXT_LIMIT: usize = 2000;
const CANDIDATE_LIMIT: usize = 128;
const RESULTS_LIMIT: i64 = 100;
/// How many results there are where a request does not say.
const USUAL_RESULTS: usize = 10;
const NO_CANDIDATE: &str = "OCR candidate not found for the provided image";

/// A text to look for on a picture.
struct TextQuery {
    text: String,
    threshold: f64,
    max_results: usize,
}

impl TextQuery {
    fn read(mut fields: Fields) -> Result<(ImageInput, Self), Reply> {
        let image = ImageInput::read(&mut fields);
        let text = fields.text("text", 1..=TEXT_LIMIT);
        let (threshold, max_results) = (threshold(&mut fields), max_results(&mut fields));
        Ok((checked(fields, image)?, Self { text, threshold, max_results }))
    }

    /// The answer that lists these rows.
    fn listed(&self, source: &Source, matches: &[TextRow]) -> Response {
        ok(&json!({
            "image": source.metadata(),
            "query": self.text,
            "threshold": self.threshold,
            "matches": shown(matches),
        }))
    }
}

/// `POST /api/sdk/ocr/run`.
pub(super) async fn run(context: &Perception<'_>, mut fields: Fields) -> Result<Response, Reply> {
    let image = ImageInput::read(&mut fields);
    let (source, rows) = read_rows(context, checked(fields, image)?).await?;
    Ok(ok(&json!({ "image": source.metadata(), "results": shown(&rows) })))
}

/// `POST /api/sdk/ocr/find-text`: the rows that fit well enough.
pub(super) async fn find_text(context: &Perception<'_>, fields: Fields) -> Result<Response, Reply> {
    let (image, query) = TextQuery::read(fields)?;
    let (source, rows) = read_rows(context, image).await?;
    let mut matches = rank(&query.text, rows).await?;
    matches.retain(|row| row.fits(query.threshold));
    matches.truncate(query.max_results);
    Ok(query.listed(&source, &matches))
}

/// `POST /api/sdk/ocr/find-text-candidates`: the rows that fit best, however well that is.
pub(super) async fn find_candidates(
    context: &Perception<'_>,
    fields: Fields,
) -> Result<Response, Reply> {
    let (image, query) = TextQuery::read(fields)?;
    let (source, rows) = read_rows(context, image).await?;
    let mut matches = rank(&query.text, rows).await?;
    matches.truncate(query.max_results);
    Ok(query.listed(&source, &matches))
}

/// `POST /api/sdk/ocr/resolve-text`: the one row that fits.
pub(super) async fn resolve_text(
    context: &Perception<'_>,
    fields: Fields,
) -> Result<Response, Reply> {
    let (image, TextQuery { text, threshold, .. }) = TextQuery::read(fields)?;
    let (source, rows) = read_rows(context, image).await?;
    let ranked = rank(&text, rows).await?;
    let row = resolve((&text, threshold), &ranked, &source.id)
        .map_err(|error| Reply::detailed(status(&error), error.detail()))?;
    Ok(ok(&json!({
        "image": source.metadata(),
        "query": text,
        "threshold": threshold,
        "match": row.shown(),
    })))
}

/// `POST /api/sdk/ocr/resolve-candidate`: a row that an earlier answer named.
pub(super) async fn resolve_candidate(
    context: &Perception<'_>,
    mut fields: Fields,
) -> Result<Response, Reply> {
    let image = ImageInput::read(&mut fields);
    let id = fields.text("candidate_id", 1..=CANDIDATE_LIMIT);
    let (source, rows) = read_rows(context, checked(fields, image)?).await?;
    let row = rows.iter().find(|row| row.candidate_id == id);
    let row = row.ok_or_else(|| Reply::new(404, NO_CANDIDATE))?;
    Ok(ok(&json!({ "image": source.metadata(), "candidate_id": id, "match": row.shown() })))
}

/// `POST /api/sdk/ocr/inspect`: everything that the requests above say, in one answer.
pub(super) async fn inspect(
    context: &Perception<'_>,
    mut fields: Fields,
    host: &str,
) -> Result<Response, Reply> {
    let image = ImageInput::read(&mut fields);
    let text = fields.maybe_text("text", 1..=TEXT_LIMIT);
    let (threshold, max_results) = (threshold(&mut fields), max_results(&mut fields));
    let include_overlay = fields.maybe_flag("include_overlay").unwrap_or(false);
    let show_labels = fields.maybe_flag("show_labels").unwrap_or(true);
    let (source, rows) = read_rows(context, checked(fields, image)?).await?;
    let ranked = match &text {
        Some(text) => rank(text, rows.clone()).await?,
        None => Vec::new(),
    };
    let resolved =
        text.as_ref().map(|text| resolve((text.as_str(), threshold), &ranked, &source.id));
    let best = &ranked[..ranked.len().min(max_results)];
    let accepted: Vec<TextRow> = best.iter().filter(|row| row.fits(threshold)).cloned().collect();
    let mut answer = json!({
        "image": source.metadata(),
        "query": text,
        "threshold": threshold,
        "results": shown(&rows),
        "ranked_matches": shown(best),
        "accepted_matches": shown(&accepted),
        "resolved_match": Value::Null,
        "resolution_error": Value::Null,
        "overlay": Value::Null,
    });
    match resolved {
        Some(Ok(row)) => answer["resolved_match"] = row.shown(),
        Some(Err(error)) => {
            answer["resolution_error"] =
                json!({ "status_code": status(&error), "detail": error.detail() });
        }
        None => {}
    }
    if include_overlay {
        let first = &rows[..rows.len().min(max_results)];
        let marks = marks(if text.is_some() { &accepted } else { first }, show_labels);
        answer["overlay"] = keep_overlay(context, source, marks, host).await?;
    }
    Ok(ok(&answer))
}

/// `POST /api/sdk/ocr/overlay`: a picture with boxes around rows, as an artifact.
pub(super) async fn overlay(
    context: &Perception<'_>,
    mut fields: Fields,
    host: &str,
) -> Result<Response, Reply> {
    let image = ImageInput::read(&mut fields);
    let text = fields.maybe_text("text", 1..=TEXT_LIMIT);
    let candidate = fields.maybe_text("candidate_id", 1..=CANDIDATE_LIMIT);
    if text.is_some() && candidate.is_some() {
        let why = "Value error, at most one of text or candidate_id may be given";
        fields.wrong(&[], "value_error", why);
    }
    let (threshold, max_results) = (threshold(&mut fields), max_results(&mut fields));
    let show_labels = fields.maybe_flag("show_labels").unwrap_or(true);
    let (source, mut rows) = read_rows(context, checked(fields, image)?).await?;
    if let Some(candidate) = candidate {
        rows.retain(|row| row.candidate_id == candidate);
        if rows.is_empty() {
            return Err(Reply::new(404, NO_CANDIDATE));
        }
    } else if let Some(text) = text {
        rows = rank(&text, rows).await?;
        rows.retain(|row| row.fits(threshold));
    }
    rows.truncate(max_results);
    let marks = marks(&rows, show_labels);
    Ok(ok(&keep_overlay(context, source, marks, host).await?))
}

fn threshold(fields: &mut Fields) -> f64 {
    fields.maybe_number("threshold", 0.0..=1.0).unwrap_or(THRESHOLD)
}

fn max_results(fields: &mut Fields) -> usize {
    let given = fields.maybe_integer("max_results", 1..=RESULTS_LIMIT);
    given.and_then(|given| usize::try_from(given).ok()).unwrap_or(USUAL_RESULTS)
}

/// The picture of a body that was read to its end, if nothing is wrong with it.
pub(super) fn checked(fields: Fields, image: Option<ImageInput>) -> Result<ImageInput, Reply> {
    fields.rest()?;
    // A body without a picture has a fault, so this is not reached.
    image.ok_or_else(|| Reply::new(422, "Image source is not a valid image"))
}

/// Reads the text on a picture.
async fn read_rows(
    context: &Perception<'_>,
    image: ImageInput,
) -> Result<(Source, Vec<TextRow>), Reply> {
    let failed = |error| PerceptionService::Ocr.failed(&error);
    context.ocr.ready().map_err(failed)?;
    let source = Source::load(context, image).await?;
    let read = context.ocr.read(source.bytes.clone()).await.map_err(failed)?;
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
