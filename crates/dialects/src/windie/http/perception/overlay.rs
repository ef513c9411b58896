//! Overlays: a picture with marks on it, kept as an artifact of the user.

use image::DynamicImage;
use serde_json::Value;

use super::drawing::{Mark, draw};
use super::source::{PictureError, Source, decode, encode_png};
use super::{Perception, off_thread};
use crate::windie::http::artifacts::shown;
use crate::windie::http::reply::Reply;

/// Draws marks on a picture and keeps the result as a PNG artifact; gives the answer that names it.
pub(crate) async fn keep_overlay(
    context: &Perception,
    source: Source,
    marks: Vec<Mark>,
) -> Result<Value, Reply> {
    let (metadata, count) = (source.metadata(), marks.len());
    let drawn = off_thread(move || drawn(&source.bytes, &marks)).await?;
    let png = drawn.map_err(|error| error.reply())?;
    let kept = context.senses.artifacts.keep_bytes(context.user.as_ref(), png).await?;
    let mut answer = shown(&kept.ok_or_else(Reply::internal)?, &context.host);
    answer["image"] = metadata;
    answer["annotation_count"] = count.into();
    Ok(answer)
}

fn drawn(bytes: &[u8], marks: &[Mark]) -> Result<Vec<u8>, PictureError> {
    let mut image = decode(bytes)?.into_rgb8();
    draw(&mut image, marks);
    encode_png(&DynamicImage::ImageRgb8(image))
}
