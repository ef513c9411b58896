//! Parses the coordinates in a vision model's answer, in any of the forms that models use.
//!
//! Models answer with JSON, with tags or with pairs of numbers; in pixels, as fractions of 1 or in
//! thousandths. The prompt requests pixels in JSON, but many models use the form they were trained
//! on.

use quintet_kernel::port::{SenseError, VisualTarget};
use serde_json::{Map, Value};

/// Maximum number of places in an answer.
const PLACES_LIMIT: usize = 100;
/// Maximum length of a pair of coordinates in brackets, in bytes.
const PAIR_LIMIT: usize = 64;
/// Maximum length of the excerpt in an error message, in characters.
const EXCERPT_LENGTH_LIMIT: usize = 120;

/// The coordinate format of a family of models, for answers in which the numbers are ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CoordinateStyle {
    /// Coordinates are thousandths.
    per_mille: bool,
    /// In a list of two coordinates the vertical one is first.
    y_first: bool,
}

/// Families by a part of their models' names.
const COORDINATE_STYLES: [(&str, CoordinateStyle); 6] = [
    ("gemini", CoordinateStyle { per_mille: true, y_first: true }),
    ("qwen3-vl", CoordinateStyle { per_mille: true, y_first: false }),
    ("glm-4", CoordinateStyle { per_mille: true, y_first: false }),
    ("ui-tars", CoordinateStyle { per_mille: true, y_first: false }),
    ("seed", CoordinateStyle { per_mille: true, y_first: false }),
    ("internvl", CoordinateStyle { per_mille: true, y_first: false }),
];

impl CoordinateStyle {
    /// The style of a model, by its name.
    pub(super) fn of(model: &str) -> Self {
        let model = model.to_lowercase();
        let known = COORDINATE_STYLES.into_iter().find(|(part, _)| model.contains(part));
        known.map_or(Self { per_mille: false, y_first: false }, |(_, style)| style)
    }
}

/// A place as the model wrote it.
#[derive(Clone, Debug, PartialEq)]
struct ModelPlace {
    x: f64,
    y: f64,
    label: Option<String>,
    confidence: Option<f32>,
}

/// The size of the coordinate system of an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    width: f64,
    height: f64,
}

/// Sizes of the picture, in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The size as sent to the model.
    pub(super) sent: (u32, u32),
    /// The original size.
    pub(super) original: (u32, u32),
}

/// The places in an answer, in pixels of the original picture; empty if the model found nothing. Fails if the
/// answer has no coordinates, or some outside the picture.
pub(super) fn targets(
    text: &str,
    sizes: Sizes,
    style: CoordinateStyle,
) -> Result<Vec<VisualTarget>, SenseError> {
    let found = in_json(text, style).or_else(|| in_tags(text)).or_else(|| in_pairs(text));
    let Some(Reading { mut places, stated, per_mille }) = found else {
        return if says_nothing_fits(text) {
            Ok(Vec::new())
        } else {
            Err(SenseError::Failed(format!("the model gave no coordinates: {}", excerpt(text))))
        };
    };
    places.truncate(PLACES_LIMIT);
    let style = CoordinateStyle { per_mille: style.per_mille || per_mille, ..style };
    // Some models state the requested scale and then use their own.
    let fits = |scale: &Scale| {
        places.iter().all(|place| place.x <= scale.width && place.y <= scale.height)
    };
    let scale = stated.filter(fits).unwrap_or_else(|| scale_of(&places, sizes.sent, style));
    places.into_iter().map(|place| mapped(place, scale, sizes.original)).collect()
}

/// Places, and their scale if the answer states it.
struct Reading {
    places: Vec<ModelPlace>,
    /// The scale that the answer itself states.
    stated: Option<Scale>,
    /// True if the form is used by models with coordinates in thousandths.
    per_mille: bool,
}

impl Reading {
    fn new(places: Vec<ModelPlace>) -> Self {
        Self { places, stated: None, per_mille: false }
    }
}

/// The scale of the numbers if the answer does not state it: 1 if none is larger, 1000 if some
/// would be outside the picture or the model uses thousandths, otherwise pixels.
fn scale_of(places: &[ModelPlace], (width, height): (u32, u32), style: CoordinateStyle) -> Scale {
    let pixels = Scale { width: width.into(), height: height.into() };
    let all = |fits: &dyn Fn(&ModelPlace) -> bool| places.iter().all(fits);
    let fraction = |place: &ModelPlace| place.x.fract() != 0.0 || place.y.fract() != 0.0;
    if all(&|place| place.x <= 1.0 && place.y <= 1.0) && places.iter().any(fraction) {
        return Scale { width: 1.0, height: 1.0 };
    }
    let on_picture = all(&|place| place.x <= pixels.width && place.y <= pixels.height);
    let in_thousand = all(&|place| place.x <= 1000.0 && place.y <= 1000.0);
    if in_thousand && (style.per_mille || !on_picture) {
        return Scale { width: 1000.0, height: 1000.0 };
    }
    pixels
}

/// A place in pixels of a picture. A place just outside is moved to the edge; one far outside is an error.
fn mapped(place: ModelPlace, scale: Scale, size: (u32, u32)) -> Result<VisualTarget, SenseError> {
    let x = along(place.x, scale.width, size.0);
    let y = along(place.y, scale.height, size.1);
    match x.zip(y) {
        Some((x, y)) => Ok(VisualTarget { x, y, label: place.label, confidence: place.confidence }),
        None => Err(SenseError::Failed(format!(
            "the model gave a place that is not on the picture: ({}, {})",
            place.x, place.y
        ))),
    }
}

fn along(value: f64, scale: f64, size: u32) -> Option<u32> {
    let part = value / scale;
    if !part.is_finite() || !(-0.05..=1.05).contains(&part) {
        return None;
    }
    let last = f64::from(size.saturating_sub(1));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the picture, whose size fits"
    )]
    Some((part * f64::from(size)).round().clamp(0.0, last) as u32)
}

/// Reads the first JSON value in an answer that has places or an empty list.
fn in_json(text: &str, style: CoordinateStyle) -> Option<Reading> {
    let starts = text.char_indices().filter(|(_, c)| matches!(c, '{' | '['));
    starts.take(20).find_map(|(at, _)| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        let mut found = Reading::new(Vec::new());
        let known = collect(&value, style, &mut found, 0);
        known.then_some(found)
    })
}

/// Members that hold a list of places.
const LISTS: [&str; 6] = ["points", "matches", "targets", "results", "elements", "boxes"];
/// Members that hold a place as two numbers.
const POINTS: [&str; 6] = ["point", "point_2d", "coordinate", "coordinates", "center", "position"];
/// Members that hold a place as the corners of a box around it.
const BOXES: [&str; 4] = ["bbox_2d", "bbox", "box", "bounding_box"];

/// Adds the places of a JSON value; false if the value is something else.
fn collect(value: &Value, style: CoordinateStyle, found: &mut Reading, depth: usize) -> bool {
    if depth > 4 || found.places.len() >= PLACES_LIMIT {
        return false;
    }
    match value {
        Value::Array(items) => {
            if let Some((x, y)) = pair(items, style.y_first) {
                found.places.push(ModelPlace { x, y, label: None, confidence: None });
                return true;
            }
            let objects = items.iter().filter(|item| item.is_object() || item.is_array());
            let known = objects.filter(|item| collect(item, style, found, depth + 1)).count();
            known > 0 || items.is_empty()
        }
        Value::Object(members) => object(members, style, found, depth),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn object(
    members: &Map<String, Value>,
    style: CoordinateStyle,
    found: &mut Reading,
    depth: usize,
) -> bool {
    found.stated = found.stated.or_else(|| stated(members));
    if let Some((x, y)) = place_of(members, style, found) {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let label = ["label", "name", "description", "text"].into_iter().find_map(text);
        let number = |name: &str| members.get(name).and_then(Value::as_f64);
        let confidence = ["confidence", "score"].into_iter().find_map(number);
        #[expect(clippy::cast_possible_truncation, reason = "a confidence needs few digits")]
        let confidence = confidence.map(|confidence| confidence.clamp(0.0, 1.0) as f32);
        found.places.push(ModelPlace { x, y, label: label.map(String::from), confidence });
        return true;
    }
    if members.get("found") == Some(&Value::Bool(false)) {
        return true;
    }
    let lists = LISTS.iter().chain(&POINTS).filter_map(|name| members.get(*name));
    let mut known = false;
    for list in lists {
        known |= list.is_null() || collect(list, style, found, depth + 1);
    }
    known
}

/// The size of the coordinate system, if an object states it: `"scale": [1000, 1000]`.
fn stated(members: &Map<String, Value>) -> Option<Scale> {
    let sides = members.get("scale")?.as_array()?;
    let [width, height] = sides.as_slice() else { return None };
    let (width, height) = (width.as_f64()?, height.as_f64()?);
    let sensible = |side: f64| side.is_finite() && side >= 1.0;
    (sensible(width) && sensible(height)).then_some(Scale { width, height })
}

fn place_of(
    members: &Map<String, Value>,
    style: CoordinateStyle,
    found: &mut Reading,
) -> Option<(f64, f64)> {
    let number = |name: &str| members.get(name).and_then(Value::as_f64);
    if let (Some(x), Some(y)) = (number("x"), number("y")) {
        return Some((x, y));
    }
    if let Some([top, left, bottom, right]) = members.get("box_2d").and_then(four) {
        found.per_mille = true;
        return Some((f64::midpoint(left, right), f64::midpoint(top, bottom)));
    }
    let corners = BOXES.iter().find_map(|name| members.get(*name).and_then(four));
    if let Some([left, top, right, bottom]) = corners {
        return Some((f64::midpoint(left, right), f64::midpoint(top, bottom)));
    }
    POINTS.iter().find_map(|name| match members.get(*name)? {
        Value::Array(items) => pair(items, style.y_first),
        Value::Object(inner) => {
            inner.get("x").and_then(Value::as_f64).zip(inner.get("y").and_then(Value::as_f64))
        }
        _ => None,
    })
}

fn pair(items: &[Value], y_first: bool) -> Option<(f64, f64)> {
    let [one, two] = items else { return None };
    let (one, two) = (one.as_f64()?, two.as_f64()?);
    Some(if y_first { (two, one) } else { (one, two) })
}

fn four(value: &Value) -> Option<[f64; 4]> {
    let numbers: Option<Vec<f64>> = value.as_array()?.iter().map(Value::as_f64).collect();
    numbers?.try_into().ok()
}

/// Parses `<point>x y</point>` in thousandths, and `<point x="…" y="…">` in percent.
fn in_tags(text: &str) -> Option<Reading> {
    let mut found = Reading::new(Vec::new());
    for (at, tag) in text.match_indices("<point") {
        let rest = &text[at + tag.len()..];
        let Some((head, body)) = rest.split_once('>') else { continue };
        let attribute = |name: &str| {
            let value = head.split_once(&format!("{name}=\""))?.1.split_once('"')?.0;
            value.trim().parse::<f64>().ok().filter(|value| value.is_finite())
        };
        if let (Some(x), Some(y)) = (attribute(" x"), attribute(" y")) {
            found.stated = Some(Scale { width: 100.0, height: 100.0 });
            found.places.push(ModelPlace { x, y, label: None, confidence: None });
            continue;
        }
        let body = body.split('<').next().unwrap_or_default();
        if let [x, y] = numbers(body)[..] {
            found.per_mille = true;
            found.places.push(ModelPlace { x, y, label: None, confidence: None });
        }
    }
    (!found.places.is_empty()).then_some(found)
}

/// Parses pairs of numbers in brackets: `(x, y)`, `[x, y]`; `(x1,y1),(x2,y2)` are two places.
fn in_pairs(text: &str) -> Option<Reading> {
    let mut places = Vec::new();
    for (at, bracket) in text.match_indices(['(', '[']) {
        // Bounds the work for an answer that consists of brackets.
        let rest = &text[at + bracket.len()..];
        let rest = &rest[..rest.floor_char_boundary(PAIR_LIMIT)];
        let inner = &rest[..rest.find([')', ']']).unwrap_or(0)];
        if let [x, y] = numbers(inner)[..] {
            places.push(ModelPlace { x, y, label: None, confidence: None });
        }
        if places.len() >= PLACES_LIMIT {
            break;
        }
    }
    (!places.is_empty()).then(|| Reading::new(places))
}

/// The numbers of a text that contains only numbers and separators.
fn numbers(text: &str) -> Vec<f64> {
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '=' | ':'));
    let words = words.filter(|word| !matches!(*word, "" | "x" | "y" | "X" | "Y" | "px" | "pixels"));
    let read = |word: &str| word.trim_end_matches("px").parse::<f64>().ok();
    let numbers: Option<Vec<f64>> = words.map(read).collect();
    numbers.unwrap_or_default().into_iter().filter(|number| number.is_finite()).collect()
}

fn says_nothing_fits(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = ["not found", "no match", "none", "cannot find", "could not find", "not visible"];
    words.iter().any(|words| text.contains(words))
}

fn excerpt(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(EXCERPT_LENGTH_LIMIT) {
        Some((end, _)) => format!("{:?} …", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests;
