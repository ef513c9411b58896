//! Overlays: a picture with marks on it, kept as an artifact of the user.

use image::DynamicImage;
use serde_json::Value;

use super::drawing::{Mark, draw};
use super::source::{PictureError, Source, decode, encode_png};
use super::{Perception, off_thread};
use crate::windie::http::artifacts::shown;
use crate::windie::http::reply::Reply;

/// Draws marks on a picture and keeps the result as a PNG artifact; gives the answer that names it.
pub(in crate::windie::http) async fn keep_overlay(
    context: &Perception<'_>,
    source: Source,
    marks: Vec<Mark>,
    host: &str,
) -> Result<Value, Reply> {
    let (metadata, count) = (source.metadata(), marks.len());
    let drawn = off_thread(move || drawn(&source.bytes, &marks)).await?;
    let png = drawn.map_err(|error| error.reply())?;
    let kept = context.artifacts.keep_bytes(context.user, png).await?;
    let artifact = kept.ok_or_else(|| Reply::new(500, "Internal server error"))?;
    let mut answer = shown(&artifact, host);
    answer["image"] = metadata;
    answer["annotation_count"] = count.into();
    Ok(answer)
}

fn drawn(bytes: &[u8], marks: &[Mark]) -> Result<Vec<u8>, PictureError> {
    let mut image = decode(bytes)?.into_rgb8();
    draw(&mut image, marks);
    encode_png(&DynamicImage::ImageRgb8(image))
}
