//! Cuts a line of text out of a picture and prepares it for a network.

use super::detect::Quad;
use super::geometry::Point;
use crate::picture::Picture;

/// A line with at least this ratio of height to width is vertical or rotated text.
const UPRIGHT_ASPECT: f32 = 1.5;

/// The size of a line along its sides, in pixels.
pub(super) fn size([a, b, c, d]: &Quad) -> (usize, usize) {
    let width = a.distance(*b).max(c.distance(*d));
    let height = a.distance(*d).max(b.distance(*c));
    ((width as usize).max(1), (height as usize).max(1))
}

/// Width divided by height, in reading direction.
pub(super) fn aspect(quad: &Quad) -> f32 {
    let (width, height) = size(quad);
    if is_upright(width, height) {
        height as f32 / width as f32
    } else {
        width as f32 / height as f32
    }
}

fn is_upright(width: usize, height: usize) -> bool {
    height as f32 / width as f32 >= UPRIGHT_ASPECT
}

/// The line as its own picture, rotated to be horizontal.
pub(super) fn crop(picture: &Picture, quad: &Quad) -> Picture {
    let (width, height) = size(quad);
    let [a, b, _, d] = *quad;
    let mut line = Picture::filled(width, height, 0);
    let along = ((b.x - a.x) / width as f32, (b.y - a.y) / width as f32);
    let down = ((d.x - a.x) / height as f32, (d.y - a.y) / height as f32);
    for (y, row) in line.pixels.chunks_exact_mut(3 * width).enumerate() {
        for (x, pixel) in row.chunks_exact_mut(3).enumerate() {
            let (x, y) = (x as f32, y as f32);
            let place = Point::new(a.x + x * along.0 + y * down.0, a.y + x * along.1 + y * down.1);
            pixel.copy_from_slice(&sample(picture, place));
        }
    }
    if is_upright(width, height) { line.quarter_turned() } else { line }
}

/// The colour at a position between pixels, by cubic interpolation.
fn sample(picture: &Picture, place: Point) -> [u8; 3] {
    let (left, top) = (place.x.floor(), place.y.floor());
    let (dx, dy) = (place.x - left, place.y - top);
    let (left, top) = (left as isize, top as isize);
    if dx == 0.0 && dy == 0.0 {
        return picture.at(left, top);
    }
    let (columns, rows) = (cubic(dx), cubic(dy));
    let mut sums = [0.0; 3];
    for (row, share) in (top - 1..).zip(rows) {
        for (column, part) in (left - 1..).zip(columns) {
            for (sum, value) in sums.iter_mut().zip(picture.at(column, row)) {
                *sum += share * part * f32::from(value);
            }
        }
    }
    sums.map(|sum| sum.round().clamp(0.0, 255.0) as u8)
}

/// The weights of four neighbours.
fn cubic(x: f32) -> [f32; 4] {
    const A: f32 = -0.75;
    let near = |x: f32| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f32| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    [far(x + 1.0), near(x), near(1.0 - x), far(2.0 - x)]
}

/// Writes a line into its slot of a batch: scaled to a height, values from -1 to 1, blue first,
/// padded with 0.
pub(super) fn normalize(line: &Picture, height: usize, width: usize, batch: &mut [f32]) {
    let natural = (height as f32 * line.width as f32 / line.height as f32).ceil() as usize;
    let used = natural.clamp(1, width);
    let scaled = line.resized(used, height);
    for (y, row) in scaled.pixels.chunks_exact(3 * used).enumerate() {
        for (x, pixel) in row.chunks_exact(3).enumerate() {
            for (plane, value) in pixel.iter().rev().enumerate() {
                batch[(plane * height + y) * width + x] = f32::from(*value) / 127.5 - 1.0;
            }
        }
    }
}
