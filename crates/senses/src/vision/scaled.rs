//! Scales a picture to the size that vision models use.

use std::io::Cursor;

use image::imageops::FilterType;
use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use quintet_kernel::port::SenseError;

/// The longest side of a picture for a model. Providers scale down larger pictures, and coordinates
/// in pixels would then refer to an unknown size.
const SIDE_LIMIT: u32 = 1568;
/// Maximum number of pixels of a decoded picture.
const PIXELS_LIMIT: u64 = 40_000_000;
/// Maximum memory for decoding, in bytes.
const DECODE_LIMIT: u64 = 512 * 1024 * 1024;
/// Maximum length of a picture that is sent unchanged, in bytes.
const BYTES_LIMIT: usize = 3 * 1024 * 1024;

/// A picture that is ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Scaled {
    pub(super) bytes: Vec<u8>,
    pub(super) mime: &'static str,
    /// Width and height as sent.
    pub(super) sent: (u32, u32),
    /// Width and height of the original.
    pub(super) original: (u32, u32),
}

/// Scales and encodes a picture; slow, so it must not run on an async thread. Fails if the bytes
/// are not a picture, or it is too large.
pub(super) fn scaled(bytes: Vec<u8>) -> Result<Scaled, SenseError> {
    let (width, height) = reader(&bytes)?.into_dimensions().map_err(unreadable)?;
    if width == 0 || height == 0 {
        return Err(SenseError::BadInput("the picture has no pixels".into()));
    }
    if u64::from(width) * u64::from(height) > PIXELS_LIMIT {
        return Err(SenseError::BadInput(format!(
            "the picture is too large: {width}x{height} pixels (max: {PIXELS_LIMIT} pixels)"
        )));
    }
    let format = reader(&bytes)?.format();
    let small = width <= SIDE_LIMIT && height <= SIDE_LIMIT && bytes.len() <= BYTES_LIMIT;
    let mime = match format {
        Some(ImageFormat::Png) => Some("image/png"),
        Some(ImageFormat::Jpeg) => Some("image/jpeg"),
        _ => None,
    };
    if let (true, Some(mime)) = (small, mime) {
        return Ok(Scaled { bytes, mime, sent: (width, height), original: (width, height) });
    }
    let mut reader = reader(&bytes)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(DECODE_LIMIT);
    reader.limits(limits);
    let mut image = reader.decode().map_err(unreadable)?;
    if width > SIDE_LIMIT || height > SIDE_LIMIT {
        image = image.resize(SIDE_LIMIT, SIDE_LIMIT, FilterType::Triangle);
    }
    let sent = (image.width(), image.height());
    let (bytes, mime) = encoded(image)?;
    Ok(Scaled { bytes, mime, sent, original: (width, height) })
}

/// PNG keeps text sharp; a photograph that is too large as PNG is sent as JPEG.
fn encoded(image: DynamicImage) -> Result<(Vec<u8>, &'static str), SenseError> {
    let encode = |image: &DynamicImage, format| {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).map_err(unreadable)?;
        Ok::<_, SenseError>(bytes.into_inner())
    };
    let png = encode(&image, ImageFormat::Png)?;
    if png.len() <= BYTES_LIMIT {
        return Ok((png, "image/png"));
    }
    let image = DynamicImage::ImageRgb8(image.into_rgb8());
    Ok((encode(&image, ImageFormat::Jpeg)?, "image/jpeg"))
}

fn reader(bytes: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, SenseError> {
    let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
    reader.map_err(|error| SenseError::BadInput(format!("the picture cannot be read: {error}")))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err needs")]
fn unreadable(error: image::ImageError) -> SenseError {
    SenseError::BadInput(format!("the picture cannot be read: {error}"))
}
