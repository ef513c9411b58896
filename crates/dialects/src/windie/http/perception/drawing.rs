//! Marks on pictures: outlines, dots and labels, clipped at the edges.

use image::{Rgb, RgbImage};

use super::font::columns;

/// The color of boxes around text.
pub(crate) const BOX_COLOR: Rgb<u8> = Rgb([0xff, 0x4d, 0x4f]);
pub(crate) const POINT_COLOR: Rgb<u8> = Rgb([0x16, 0x77, 0xff]);
/// The width of outlines in pixels.
const OUTLINE: i64 = 3;
/// The size of a dot of the font in pixels.
const FONT_SCALE: i64 = 2;

/// A mark on a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) shape: MarkShape,
    pub(crate) color: Rgb<u8>,
    pub(crate) label: Option<String>,
}

/// The shape of a mark, in pixels. Coordinates may lie outside of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkShape {
    /// An outline, perhaps with a dot in its center.
    Box { x: i64, y: i64, width: i64, height: i64, center: Option<(i64, i64)> },
    /// A dot.
    Point { x: i64, y: i64 },
}

pub(crate) fn draw(image: &mut RgbImage, marks: &[Mark]) {
    for mark in marks {
        let (shape, color) = (mark.shape, mark.color);
        let label_at = match shape {
            MarkShape::Box { x, y, width, height, center } => {
                outline(image, (x, y, x.saturating_add(width), y.saturating_add(height)), color);
                if let Some(center) = center {
                    dot(image, center, 4, color);
                }
                (x.saturating_add(4), y.saturating_sub(14).max(0))
            }
            MarkShape::Point { x, y } => {
                dot(image, (x, y), 6, color);
                (x.saturating_add(8), y.saturating_sub(8).max(0))
            }
        };
        if let Some(label) = &mark.label {
            write(image, label_at, label, color);
        }
    }
}

/// Draws the outline of a rectangle, both corners included, inwards.
fn outline(image: &mut RgbImage, (left, top, right, bottom): (i64, i64, i64, i64), color: Rgb<u8>) {
    let inner = OUTLINE - 1;
    fill(image, (left, top, right, top.saturating_add(inner).min(bottom)), color);
    fill(image, (left, bottom.saturating_sub(inner).max(top), right, bottom), color);
    fill(image, (left, top, left.saturating_add(inner).min(right), bottom), color);
    fill(image, (right.saturating_sub(inner).max(left), top, right, bottom), color);
}

/// Fills a rectangle, both corners included, as far as it is on the picture.
fn fill(image: &mut RgbImage, (left, top, right, bottom): (i64, i64, i64, i64), color: Rgb<u8>) {
    let (width, height) = (i64::from(image.width()), i64::from(image.height()));
    for y in top.max(0)..=bottom.min(height - 1) {
        for x in left.max(0)..=right.min(width - 1) {
            put(image, (x, y), color);
        }
    }
}

fn dot(image: &mut RgbImage, (x, y): (i64, i64), radius: i64, color: Rgb<u8>) {
    for down in -radius..=radius {
        for right in -radius..=radius {
            // The extra radius makes the circle round where its pixels are few.
            if right * right + down * down <= radius * radius + radius {
                put(image, (x.saturating_add(right), y.saturating_add(down)), color);
            }
        }
    }
}

/// Writes a line of text whose upper left corner is given, up to the edge of the picture.
fn write(image: &mut RgbImage, (left, top): (i64, i64), text: &str, color: Rgb<u8>) {
    let mut x = left;
    for character in text.chars() {
        if x >= i64::from(image.width()) {
            return;
        }
        for column in columns(character) {
            for row in (0..8).filter(|row| column & (1 << row) != 0) {
                let y = top.saturating_add(row * FONT_SCALE);
                fill(
                    image,
                    (x, y, x.saturating_add(FONT_SCALE - 1), y.saturating_add(FONT_SCALE - 1)),
                    color,
                );
            }
            x = x.saturating_add(FONT_SCALE);
        }
        x = x.saturating_add(FONT_SCALE);
    }
}

fn put(image: &mut RgbImage, (x, y): (i64, i64), color: Rgb<u8>) {
    let at = u32::try_from(x).ok().zip(u32::try_from(y).ok());
    if let Some(pixel) = at.and_then(|(x, y)| image.get_pixel_mut_checked(x, y)) {
        *pixel = color;
    }
}

#[cfg(test)]
mod tests;
