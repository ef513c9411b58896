//! The picture that a request is about: an artifact of the user, or one in the request itself.

use std::io::Cursor;

use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use quintet_kernel::port::StorageError;
use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

use super::{Perception, off_thread};
use crate::windie::artifacts::decode_base64;
use crate::windie::fields::Object;
use crate::windie::http::artifacts::is_id;
use crate::windie::http::reply::Reply;
use crate::windie::ocr_rows::Area;

const ARTIFACT_ID_LIMIT: usize = 200;
/// The longest inline picture: one of 25 MiB in base64, and a data URL's head.
const INLINE_LIMIT: usize = 36 * 1024 * 1024;
/// The most pixels of a picture; a PNG of a few kilobytes can claim any number.
const PIXELS_LIMIT: u64 = 40_000_000;
const SIDE_LIMIT: u32 = 16_384;
/// The most bytes that decoding may allocate.
const DECODE_LIMIT: u64 = 512 * 1024 * 1024;

/// Where a picture comes from.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ImageInput {
    Artifact(String),
    /// In base64, perhaps as a data URL.
    Inline(String),
}

impl ImageInput {
    /// Reads the member `image` of a body.
    pub(crate) fn of(body: &Object<'_>) -> Self {
        let image = body.needed("image").object();
        let text = |name, most| {
            let text = image.as_ref().and_then(|image| image.text(name, 0..=most));
            text.filter(|text| !text.is_empty())
        };
        let artifact = text("artifact_id", ARTIFACT_ID_LIMIT);
        let inline = text("image_base64", INLINE_LIMIT);
        if let Some(image) = image
            && artifact.is_some() == inline.is_some()
        {
            let why = "Value error, exactly one of artifact_id or image_base64 is required";
            image.fault(&[], "value_error", why);
        }
        artifact.map_or_else(|| Self::Inline(inline.unwrap_or_default()), Self::Artifact)
    }
}

/// A picture: encoded, with its size known from its header.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) id: String,
    artifact: Option<String>,
    content_type: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bytes: Vec<u8>,
}

impl Source {
    /// Loads a picture; fails if it is missing, another user's, no picture or too large.
    pub(crate) async fn load(context: &Perception, input: ImageInput) -> Result<Self, Reply> {
        let (id, artifact, content_type, bytes) = match input {
            ImageInput::Artifact(id) => {
                let id = id.trim().to_owned();
                let (content_type, bytes) = artifact(context, &id).await?;
                (id.clone(), Some(id), content_type, bytes)
            }
            ImageInput::Inline(data) => {
                let bytes = off_thread(move || decode_base64(&data)).await?;
                let bytes = bytes.ok_or_else(|| Reply::new(422, "Invalid image_base64 payload"))?;
                let id = format!("inline_{}", &hex::encode(Sha1::digest(&bytes))[..12]);
                (id, None, "image/png".to_owned(), bytes)
            }
        };
        if bytes.len() as u64 > context.senses.size_limit {
            return Err(Reply::new(413, "Image too large"));
        }
        let (width, height) = size_of(&bytes)?;
        Ok(Self { id, artifact, content_type, width, height, bytes })
    }

    /// The picture as clients see it.
    pub(crate) fn metadata(&self) -> Value {
        json!({
            "source_id": self.id,
            "artifact_id": self.artifact,
            "content_type": self.content_type,
            "width": self.width,
            "height": self.height,
        })
    }

    /// A part of the picture, as a PNG; the area is cut at the edges.
    pub(crate) async fn crop(self, area: Area) -> Result<Self, Reply> {
        let Area { x, y, .. } = area;
        if x >= self.width || y >= self.height {
            return Err(Reply::new(422, "Requested region is outside image bounds"));
        }
        let (width, height) = (area.width.min(self.width - x), area.height.min(self.height - y));
        let id = format!("{}:crop:{x}:{y}:{width}:{height}", self.id);
        let bytes = off_thread(move || {
            let cropped = decode(&self.bytes)?.crop_imm(x, y, width, height);
            encode_png(&cropped)
        });
        let bytes = bytes.await??;
        Ok(Self { id, artifact: None, content_type: "image/png".into(), width, height, bytes })
    }
}

/// The type and content of an artifact that the user may see.
async fn artifact(context: &Perception, id: &str) -> Result<(String, Vec<u8>), Reply> {
    if !is_id(id) {
        return Err(Reply::new(400, "Invalid artifact id"));
    }
    let missing = || Reply::new(404, "Artifact not found");
    let artifact =
        context.senses.artifacts.find(context.user.as_ref(), id).await?.ok_or_else(missing)?;
    if artifact.size > context.senses.size_limit {
        return Err(Reply::new(413, "Image too large"));
    }
    let length = usize::try_from(artifact.size).unwrap_or(usize::MAX);
    match context.senses.artifacts.uploads.part(id, 0, length).await {
        Err(StorageError::Missing(_)) => Err(missing()),
        read => Ok((artifact.mime, read?)),
    }
}

/// The reason why a picture cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PictureError {
    #[error("Image source is not a valid image")]
    NotAnImage,
    #[error(
        "Image source is too large: {width}x{height} pixels (max: {} pixels, {} on a side)",
        PIXELS_LIMIT,
        SIDE_LIMIT
    )]
    TooLarge { width: u32, height: u32 },
}

impl From<PictureError> for Reply {
    fn from(error: PictureError) -> Self {
        Self::new(422, error.to_string())
    }
}

/// The width and height of an encoded picture, from its header alone.
fn size_of(bytes: &[u8]) -> Result<(u32, u32), PictureError> {
    let (width, height) = reader(bytes)?.into_dimensions().map_err(not_an_image)?;
    if width == 0 || height == 0 {
        return Err(PictureError::NotAnImage);
    }
    let pixels = u64::from(width) * u64::from(height);
    if pixels > PIXELS_LIMIT || width > SIDE_LIMIT || height > SIDE_LIMIT {
        return Err(PictureError::TooLarge { width, height });
    }
    Ok((width, height))
}

/// Decodes a picture; fails before it allocates memory if the picture is too large.
pub(crate) fn decode(bytes: &[u8]) -> Result<DynamicImage, PictureError> {
    size_of(bytes)?;
    let mut reader = reader(bytes)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(DECODE_LIMIT);
    reader.limits(limits);
    reader.decode().map_err(not_an_image)
}

pub(crate) fn encode_png(image: &DynamicImage) -> Result<Vec<u8>, PictureError> {
    let mut bytes = Cursor::new(Vec::new());
    image.write_to(&mut bytes, ImageFormat::Png).map_err(not_an_image)?;
    Ok(bytes.into_inner())
}

fn reader(bytes: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, PictureError> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    let reader = reader.map_err(|_| PictureError::NotAnImage)?;
    match reader.format() {
        Some(ImageFormat::Png | ImageFormat::Jpeg) => Ok(reader),
        _ => Err(PictureError::NotAnImage),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
fn not_an_image(error: image::ImageError) -> PictureError {
    tracing::debug!(%error, "a picture cannot be read");
    PictureError::NotAnImage
}

#[cfg(test)]
mod tests;
