//! Things on pictures: where they are, what a picture shows, and marks on it.

use axum::response::Response;
use image::Rgb;
use quintet_kernel::port::{SenseError, VisionResult, VisualTarget};
use serde_json::{Value, json};

use super::fields::Fields;
use super::ocr::checked;
use super::perception::Perception;
use super::perception::drawing::{BOX_COLOR, Mark, MarkShape, POINT_COLOR};
use super::perception::overlay::keep_overlay;
use super::perception::source::{ImageInput, Source};
use super::reply::{Reply, ok};
use super::sense_error::PerceptionService;
use crate::windie::ocr_rows::Area;

const DESCRIPTION_LIMIT: usize = 2000;
const RESULTS_LIMIT: i64 = 25;
/// How many places are looked for where a request does not say.
const USUAL_RESULTS: usize = 5;
/// The most points, or regions, of one overlay.
const MARKS_LIMIT: usize = 1000;
const LABEL_LIMIT: usize = 200;
const COLOR_LIMIT: usize = 32;

/// `POST /api/sdk/vision/locate`: the best place.
pub(super) async fn locate(
    context: &Perception<'_>,
    mut fields: Fields,
) -> Result<Response, Reply> {
    let image = ImageInput::read(&mut fields);
    let description = fields.text("description", 1..=DESCRIPTION_LIMIT);
    let image = checked(fields, image)?;
    let (source, VisionResult { value, model }) = find(context, image, &description, 1).await?;
    let best = value.first().ok_or_else(|| {
        Reply::new(404, format!("Vision model could not identify '{description}'"))
    })?;
    Ok(ok(&json!({
        "image": source,
        "description": description,
        "match": shown(best, 1, &description),
        "model": model,
    })))
}

/// `POST /api/sdk/vision/locate-all`: all places, the best first.
pub(super) async fn locate_all(
    context: &Perception<'_>,
    mut fields: Fields,
) -> Result<Response, Reply> {
    let image = ImageInput::read(&mut fields);
    let description = fields.text("description", 1..=DESCRIPTION_LIMIT);
    let most = fields.maybe_integer("max_results", 1..=RESULTS_LIMIT);
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(USUAL_RESULTS);
    let image = checked(fields, image)?;
    let (source, VisionResult { value, model }) = find(context, image, &description, most).await?;
    let ranked = (1..=most).zip(&value);
    let matches: Vec<Value> =
        ranked.map(|(rank, target)| shown(target, rank, &description)).collect();
    Ok(ok(&json!({
        "image": source,
        "description": description,
        "matches": matches,
        "model": model,
    })))
}

/// `POST /api/sdk/vision/describe`: a picture or a part of it in words.
pub(super) async fn describe(
    context: &Perception<'_>,
    mut fields: Fields,
) -> Result<Response, Reply> {
    let image = ImageInput::read(&mut fields);
    let mut region = None;
    fields.maybe_object("region", |given| region = area(given));
    let image = checked(fields, image)?;
    context.vision.ready().map_err(failed)?;
    let mut source = Source::load(context, image).await?;
    if let Some(area) = region {
        source = source.crop(area).await?;
        region = Some(Area { x: 0, y: 0, width: source.width, height: source.height });
    }
    let metadata = source.metadata();
    let VisionResult { value, model } =
        context.vision.describe(source.bytes).await.map_err(failed)?;
    let description = value.trim();
    if description.is_empty() {
        return Err(Reply::new(502, "Vision provider returned an empty description"));
    }
    Ok(ok(&json!({
        "image": metadata,
        "region": region.map(Area::shown),
        "description": description,
        "model": model,
    })))
}

/// `POST /api/sdk/vision/overlay`: a picture with points and regions on it, as an artifact.
pub(super) async fn overlay(
    context: &Perception<'_>,
    mut fields: Fields,
    host: &str,
) -> Result<Response, Reply> {
    let image = ImageInput::read(&mut fields);
    let mut marks = Vec::new();
    read_marks(&mut fields, &mut marks);
    // Clients send an earlier answer back as it is.
    fields.maybe_object("result", |result| read_marks(result, &mut marks));
    if !fields.maybe_flag("show_labels").unwrap_or(true) {
        marks.iter_mut().for_each(|mark| mark.label = None);
    }
    // Points stay visible where regions cover them.
    marks.sort_by_key(|mark| matches!(mark.shape, MarkShape::Point { .. }));
    let source = Source::load(context, checked(fields, image)?).await?;
    Ok(ok(&keep_overlay(context, source, marks, host).await?))
}

async fn find(
    context: &Perception<'_>,
    image: ImageInput,
    description: &str,
    limit: usize,
) -> Result<(Value, VisionResult<Vec<VisualTarget>>), Reply> {
    context.vision.ready().map_err(failed)?;
    let source = Source::load(context, image).await?;
    let metadata = source.metadata();
    let found = context.vision.locate(source.bytes, description.to_owned(), limit).await;
    Ok((metadata, found.map_err(failed)?))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn failed(error: SenseError) -> Reply {
    PerceptionService::Vision.failed(&error)
}

fn shown(target: &VisualTarget, rank: usize, description: &str) -> Value {
    let confidence = target.confidence.filter(|confidence| confidence.is_finite());
    json!({
        "description": description,
        "center": { "x": target.x, "y": target.y },
        "rank": rank,
        "label": target.label,
        "confidence": confidence,
    })
}

/// A region of a picture; nothing if it is not as it should be.
fn area(region: &mut Fields) -> Option<Area> {
    let mut side = |name: &str, least: i64| {
        let side = region.integer(name, least..=i64::MAX)?;
        Some(u32::try_from(side).unwrap_or(u32::MAX))
    };
    let (x, y, width, height) = (side("x", 0), side("y", 0), side("width", 1), side("height", 1));
    Some(Area { x: x?, y: y?, width: width?, height: height? })
}

/// Takes the points and regions of an object.
fn read_marks(fields: &mut Fields, marks: &mut Vec<Mark>) {
    fields.maybe_objects("points", MARKS_LIMIT, |point| {
        let (x, y) = (side(point, "x"), side(point, "y"));
        let (label, color) = label(point);
        let color = color.unwrap_or(POINT_COLOR);
        marks.push(Mark { shape: MarkShape::Point { x, y }, color, label });
    });
    fields.maybe_objects("regions", MARKS_LIMIT, |region| {
        let (x, y) = (side(region, "x"), side(region, "y"));
        let (width, height) = (side(region, "width"), side(region, "height"));
        let (label, color) = label(region);
        let color = color.unwrap_or(BOX_COLOR);
        marks.push(Mark {
            shape: MarkShape::Box { x, y, width, height, center: None },
            color,
            label,
        });
    });
}

fn side(mark: &mut Fields, name: &str) -> i64 {
    mark.integer(name, 0..=i64::MAX).unwrap_or_default()
}

fn label(mark: &mut Fields) -> (Option<String>, Option<Rgb<u8>>) {
    let label = mark.maybe_text("label", 0..=LABEL_LIMIT);
    let Some(given) = mark.maybe_text("color", 0..=COLOR_LIMIT) else { return (label, None) };
    let color = color(&given);
    if color.is_none() {
        let why = "Value error, color must be like #1677ff";
        mark.wrong(&[json!("color")], "value_error", why);
    }
    (label, color)
}

/// A color written as `#rrggbb`.
fn color(text: &str) -> Option<Rgb<u8>> {
    let digits = text.strip_prefix('#')?;
    if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let channel = |at: usize| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    Some(Rgb([channel(0)?, channel(2)?, channel(4)?]))
}
