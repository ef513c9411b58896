//! Vision: finds things in a picture, describes it, and draws marks on it.

use axum::Json;
use image::Rgb;
use quintet_kernel::port::{VisionResult, VisualTarget};
use serde_json::{Value, json};

use super::perception::drawing::{BOX_COLOR, Mark, MarkShape, POINT_COLOR};
use super::perception::source::{ImageInput, Source};
use super::perception::{Perception, keep_overlay};
use super::reply::{Reply, unavailable};
use super::{Body, JsonReply};
use crate::windie::fields::Object;
use crate::windie::ocr_rows::Area;

const SERVICE: &str = "Vision service";
const DESCRIPTION_LIMIT: usize = 2000;
const RESULTS_LIMIT: i64 = 25;
/// The number of results if a request names none.
const DEFAULT_RESULTS: i64 = 5;
/// The most points, or regions, of one overlay.
const MARKS_LIMIT: usize = 1000;
const LABEL_LIMIT: usize = 200;
const COLOR_LIMIT: usize = 32;

/// `POST /api/sdk/vision/locate`: the best place.
pub(super) async fn locate(context: Perception, body: Body) -> JsonReply {
    let (image, description) = body.read(image_and_description)?;
    let (source, VisionResult { value, model }) = find(&context, image, &description, 1).await?;
    let best = value.first().ok_or_else(|| {
        Reply::new(404, format!("Vision model could not identify '{description}'"))
    })?;
    Ok(Json(json!({
        "image": source,
        "description": description,
        "match": shown(best, 1, &description),
        "model": model,
    })))
}

/// `POST /api/sdk/vision/locate-all`: all places, the best first.
pub(super) async fn locate_all(context: Perception, body: Body) -> JsonReply {
    let ((image, description), most) = body.read(|body| {
        (image_and_description(body), body.not_null("max_results").whole(1..=RESULTS_LIMIT))
    })?;
    let most = usize::try_from(most.unwrap_or(DEFAULT_RESULTS)).unwrap_or_default();
    let (source, VisionResult { value, model }) = find(&context, image, &description, most).await?;
    let ranked = (1..=most).zip(&value);
    let matches: Vec<Value> =
        ranked.map(|(rank, target)| shown(target, rank, &description)).collect();
    Ok(Json(json!({
        "image": source,
        "description": description,
        "matches": matches,
        "model": model,
    })))
}

fn image_and_description(body: &Object<'_>) -> (ImageInput, String) {
    (ImageInput::of(body), body.needed_text("description", 1..=DESCRIPTION_LIMIT))
}

/// `POST /api/sdk/vision/describe`: a picture or a part of it in words.
pub(super) async fn describe(context: Perception, body: Body) -> JsonReply {
    let (image, mut region) = body
        .read(|body| (ImageInput::of(body), body.object("region").map(|region| area(&region))))?;
    let failed = unavailable(SERVICE);
    context.senses.vision.ready().map_err(failed)?;
    let mut source = Source::load(&context, image).await?;
    if let Some(area) = region {
        source = source.crop(area).await?;
        region = Some(Area { x: 0, y: 0, width: source.width, height: source.height });
    }
    let metadata = source.metadata();
    let described = context.senses.vision.describe(source.bytes).await;
    let VisionResult { value, model } = described.map_err(failed)?;
    let description = value.trim();
    if description.is_empty() {
        return Err(Reply::new(502, "Vision provider returned an empty description"));
    }
    Ok(Json(json!({
        "image": metadata,
        "region": region,
        "description": description,
        "model": model,
    })))
}

/// `POST /api/sdk/vision/overlay`: a picture with points and regions on it, as an artifact.
pub(super) async fn overlay(context: Perception, body: Body) -> JsonReply {
    let (image, mut marks) = body.read(|body| {
        let image = ImageInput::of(body);
        // Clients may send an earlier answer unchanged.
        let result = body.object("result");
        let mut marks: Vec<Mark> =
            [Some(body), result.as_ref()].into_iter().flatten().flat_map(marks).collect();
        if !body.not_null("show_labels").flag().unwrap_or(true) {
            marks.iter_mut().for_each(|mark| mark.label = None);
        }
        (image, marks)
    })?;
    // Points stay visible where regions cover them.
    marks.sort_by_key(|mark| matches!(mark.shape, MarkShape::Point { .. }));
    let source = Source::load(&context, image).await?;
    Ok(Json(keep_overlay(&context, source, marks).await?))
}

async fn find(
    context: &Perception,
    image: ImageInput,
    description: &str,
    limit: usize,
) -> Result<(Value, VisionResult<Vec<VisualTarget>>), Reply> {
    let (vision, failed) = (&context.senses.vision, unavailable(SERVICE));
    vision.ready().map_err(failed)?;
    let source = Source::load(context, image).await?;
    let metadata = source.metadata();
    let found = vision.locate(source.bytes, description.to_owned(), limit).await;
    Ok((metadata, found.map_err(failed)?))
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

/// A region of a picture.
fn area(region: &Object<'_>) -> Area {
    let side = |name: &str, least: i64| {
        let side = region.needed(name).whole(least..=i64::MAX).unwrap_or_default();
        u32::try_from(side).unwrap_or(u32::MAX)
    };
    let (x, y) = (side("x", 0), side("y", 0));
    Area { x, y, width: side("width", 1), height: side("height", 1) }
}

/// The points and regions of an object.
fn marks(object: &Object<'_>) -> Vec<Mark> {
    let side = |mark: &Object<'_>, name| mark.needed(name).whole(0..=i64::MAX).unwrap_or_default();
    let point = |mark: &Object<'_>| {
        labelled(mark, MarkShape::Point { x: side(mark, "x"), y: side(mark, "y") }, POINT_COLOR)
    };
    let region = |mark: &Object<'_>| {
        let (x, y) = (side(mark, "x"), side(mark, "y"));
        let (width, height) = (side(mark, "width"), side(mark, "height"));
        labelled(mark, MarkShape::Box { x, y, width, height, center: None }, BOX_COLOR)
    };
    let mut marks = object.objects("points", MARKS_LIMIT, point);
    marks.extend(object.objects("regions", MARKS_LIMIT, region));
    marks
}

/// A mark of a shape, with its label and color.
fn labelled(mark: &Object<'_>, shape: MarkShape, default: Rgb<u8>) -> Mark {
    let label = mark.text("label", 0..=LABEL_LIMIT);
    let named = mark.text("color", 0..=COLOR_LIMIT).map(|named| color(&named));
    if named == Some(None) {
        mark.wrong("color", "Value error, color must be like #1677ff");
    }
    Mark { shape, color: named.flatten().unwrap_or(default), label }
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
