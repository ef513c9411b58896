//! Pictures: decoding with limits, and resizing.

use std::io::Cursor;

use image::error::{ImageError, LimitErrorKind};
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use quintet_kernel::port::SenseError;

/// Maximum length of a side, in pixels.
const SIDE_LIMIT: u32 = 16_384;
/// Maximum number of pixels; an 8K screen has 33 million.
const PIXELS_LIMIT: u64 = 40_000_000;
/// Maximum memory for decoding, in bytes.
const MEMORY_LIMIT: u64 = 400 << 20;

/// A picture in memory: red, green and blue bytes, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<u8>,
}

impl Picture {
    /// Decodes PNG, JPEG, WebP or GIF (its first frame). Fails with `BadInput` if the bytes are no
    /// picture or are too large; the size is checked before anything is decoded.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, SenseError> {
        let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
        let reader = reader.map_err(|error| bad(format!("the image cannot be read: {error}")))?;
        if reader.format().is_none() {
            return Err(bad("not an image: PNG, JPEG, WebP and GIF are known"));
        }
        let mut decoder = reader.into_decoder().map_err(|error| unreadable(&error))?;
        let (width, height) = decoder.dimensions();
        check_size(width, height)?;
        let mut limits = Limits::default();
        limits.max_alloc = Some(MEMORY_LIMIT);
        decoder.set_limits(limits).map_err(|error| unreadable(&error))?;
        let image = DynamicImage::from_decoder(decoder).map_err(|error| unreadable(&error))?;
        Ok(Self {
            width: width as usize,
            height: height as usize,
            pixels: if image.color().has_alpha() {
                flattened(&image.into_rgba8().into_raw())
            } else {
                image.into_rgb8().into_raw()
            },
        })
    }

    pub(crate) fn filled(width: usize, height: usize, value: u8) -> Self {
        Self { width, height, pixels: vec![value; 3 * width * height] }
    }

    /// The colour of a pixel; of the nearest one for a position outside.
    pub(crate) fn at(&self, x: isize, y: isize) -> [u8; 3] {
        let x = x.clamp(0, self.width as isize - 1) as usize;
        let y = y.clamp(0, self.height as isize - 1) as usize;
        let start = 3 * (y * self.width + x);
        [self.pixels[start], self.pixels[start + 1], self.pixels[start + 2]]
    }

    /// Scales with linear interpolation. A picture that becomes much smaller is averaged first.
    pub(crate) fn resized(&self, width: usize, height: usize) -> Self {
        if (width, height) == (self.width, self.height) {
            return self.clone();
        }
        let factor = (self.width / width.max(1)).min(self.height / height.max(1));
        if factor >= 2 {
            return self.averaged(factor).resized(width, height);
        }
        let (columns, rows) = (Steps::new(self.width, width), Steps::new(self.height, height));
        let mut pixels = Vec::with_capacity(3 * width * height);
        for row in &rows.0 {
            let upper = &self.pixels[3 * self.width * row.first..][..3 * self.width];
            let lower = &self.pixels[3 * self.width * row.second..][..3 * self.width];
            for column in &columns.0 {
                for colour in 0..3 {
                    let (left, right) = (3 * column.first + colour, 3 * column.second + colour);
                    let above = column.mix(upper[left], upper[right]);
                    let below = column.mix(lower[left], lower[right]);
                    pixels.push((above + (below - above) * row.share + 0.5) as u8);
                }
            }
        }
        Self { width, height, pixels }
    }

    /// Averages squares of `factor` by `factor` pixels.
    fn averaged(&self, factor: usize) -> Self {
        let (width, height) = (self.width / factor, self.height / factor);
        let count = (factor * factor) as u32;
        let mut pixels = Vec::with_capacity(3 * width * height);
        let mut sums = vec![0_u32; 3 * width];
        for row in 0..height {
            sums.fill(0);
            for line in 0..factor {
                let line = &self.pixels[3 * self.width * (row * factor + line)..];
                for (place, value) in line[..3 * width * factor].iter().enumerate() {
                    sums[place / (3 * factor) * 3 + place % 3] += u32::from(*value);
                }
            }
            pixels.extend(sums.iter().map(|sum| ((sum + count / 2) / count) as u8));
        }
        Self { width, height, pixels }
    }

    /// The picture rotated by a quarter turn, counterclockwise.
    pub(crate) fn quarter_turned(&self) -> Self {
        let (width, height) = (self.height, self.width);
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for y in 0..height {
            for x in 0..width {
                pixels.extend(self.at((self.width - 1 - y) as isize, x as isize));
            }
        }
        Self { width, height, pixels }
    }

    /// The picture rotated by a half turn.
    pub(crate) fn half_turned(mut self) -> Self {
        self.pixels.reverse();
        self.pixels.chunks_exact_mut(3).for_each(<[u8]>::reverse);
        self
    }
}

/// The source of a pixel in a scaled row: two pixels and the weight of the second.
struct Step {
    first: usize,
    second: usize,
    share: f32,
}

struct Steps(Vec<Step>);

impl Steps {
    fn new(from: usize, to: usize) -> Self {
        let scale = from as f32 / to as f32;
        let step = |place: usize| {
            let exact = ((place as f32 + 0.5) * scale - 0.5).clamp(0.0, (from - 1) as f32);
            let first = exact as usize;
            Step { first, second: (first + 1).min(from - 1), share: exact - first as f32 }
        };
        Self((0..to).map(step).collect())
    }
}

impl Step {
    fn mix(&self, first: u8, second: u8) -> f32 {
        let (first, second) = (f32::from(first), f32::from(second));
        first + (second - first) * self.share
    }
}

fn check_size(width: u32, height: u32) -> Result<(), SenseError> {
    if width == 0 || height == 0 {
        return Err(bad("the image has no pixels"));
    }
    let pixels = u64::from(width) * u64::from(height);
    if width > SIDE_LIMIT || height > SIDE_LIMIT || pixels > PIXELS_LIMIT {
        return Err(bad(format!(
            "the image is too large: {width} x {height} pixels, the limit is {SIDE_LIMIT} a side and \
             {} million in all",
            PIXELS_LIMIT / 1_000_000
        )));
    }
    Ok(())
}

/// Puts a picture with transparent parts on white, or on black if its visible part is bright.
fn flattened(rgba: &[u8]) -> Vec<u8> {
    let brightness = |[r, g, b, _]: &[u8; 4]| {
        0.299 * f64::from(*r) + 0.587 * f64::from(*g) + 0.114 * f64::from(*b)
    };
    let (pixels, _) = rgba.as_chunks::<4>();
    let visible = || pixels.iter().filter(|pixel| pixel[3] > 0);
    let mean = visible().map(brightness).sum::<f64>() / visible().count().max(1) as f64;
    let opaque = pixels.iter().all(|pixel| pixel[3] == 255);
    let ground = if mean < 128.0 || opaque { 255 } else { 0 };
    let blend = |value: u8, alpha: u8| {
        let (value, alpha) = (u32::from(value), u32::from(alpha));
        ((value * alpha + ground * (255 - alpha) + 127) / 255) as u8
    };
    let flat = |[r, g, b, alpha]: &[u8; 4]| [*r, *g, *b].map(|value| blend(value, *alpha));
    pixels.iter().flat_map(flat).collect()
}

fn bad(reason: impl Into<String>) -> SenseError {
    SenseError::BadInput(reason.into())
}

fn unreadable(error: &ImageError) -> SenseError {
    match error {
        ImageError::Limits(limit) if matches!(limit.kind(), LimitErrorKind::InsufficientMemory) => {
            bad("the image is too large to decode")
        }
        error => bad(format!("the image cannot be decoded: {error}")),
    }
}

#[cfg(test)]
mod tests;
