//! Finds the lines of text in a picture.

use quintet_kernel::port::SenseError;
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::geometry::Point;
use super::regions::Map;
use crate::network::Network;
use crate::picture::Picture;
use crate::worker::failed;

/// A larger picture is scaled down, which bounds memory and time.
const LONG_SIDE_LIMIT: usize = 2000;
/// A smaller picture is scaled up until its shorter side has this length.
const SHORT_SIDE_MINIMUM: usize = 736;
/// A picture that is longer than this times its other side gets black borders.
const ASPECT_LIMIT: usize = 8;
/// Sides must be multiples of this.
const SIZE_STEP: usize = 32;
/// Lines with a shorter side in pixels are dropped.
const SIDE_MINIMUM: f32 = 3.0;

/// A line of text in a picture: upper left, upper right, lower right, lower left corner.
pub(super) type Quad = [Point; 4];

pub(super) struct Detector {
    network: Network,
}

/// A picture as the network sees it, and the mapping back to the original.
struct View {
    picture: Picture,
    /// Pixels of the original per pixel of the view.
    scale: (f32, f32),
    /// The black borders at the left and the top, in pixels of the view.
    border: (f32, f32),
}

impl Detector {
    pub(super) fn new(network: Network) -> Self {
        Self { network }
    }

    pub(super) fn detect(&self, picture: &Picture) -> Result<Vec<Quad>, SenseError> {
        let view = View::new(picture);
        let (width, height) = (view.picture.width, view.picture.height);
        let input = normalized(&view.picture);
        let output = self.network.run(vec![input.view().into()])?;
        if output.shape() != [1, 1, height, width] {
            return Err(failed("the detection model gave a map of another size"));
        }
        let values = output.to_vec();
        if values.iter().any(|value| value.is_nan()) {
            return Err(failed("the detection model gave values that are no numbers"));
        }
        let rectangles = Map { width, height, values }.rectangles();
        let quads = rectangles.iter().map(|rectangle| view.original(rectangle.corners(), picture));
        let large =
            |[a, b, _, d]: &Quad| a.distance(*b) > SIDE_MINIMUM && a.distance(*d) > SIDE_MINIMUM;
        Ok(quads.filter(large).collect())
    }
}

impl View {
    fn new(original: &Picture) -> Self {
        let bounded = bounded(original);
        let (bordered, left, top) = bordered(bounded);
        let shorter = bordered.width.min(bordered.height);
        let ratio = (SHORT_SIDE_MINIMUM as f32 / shorter as f32).max(1.0);
        let (width, height) = (scaled(bordered.width, ratio), scaled(bordered.height, ratio));
        let zoom = (width as f32 / bordered.width as f32, height as f32 / bordered.height as f32);
        let border = (left as f32 * zoom.0, top as f32 * zoom.1);
        let inner = (
            (bordered.width - 2 * left) as f32 * zoom.0,
            (bordered.height - 2 * top) as f32 * zoom.1,
        );
        let scale = (original.width as f32 / inner.0, original.height as f32 / inner.1);
        Self { picture: bordered.resized(width, height), scale, border }
    }

    /// Corners in whole pixels of the original.
    fn original(&self, corners: Quad, original: &Picture) -> Quad {
        let place = |value: f32, border: f32, scale: f32, size: usize| {
            ((value - border) * scale).round().clamp(0.0, (size - 1) as f32)
        };
        corners.map(|Point { x, y }| {
            Point::new(
                place(x, self.border.0, self.scale.0, original.width),
                place(y, self.border.1, self.scale.1, original.height),
            )
        })
    }
}

/// The picture with no side longer than the limit.
fn bounded(picture: &Picture) -> Picture {
    let longer = picture.width.max(picture.height);
    if longer <= LONG_SIDE_LIMIT {
        return picture.clone();
    }
    let ratio = LONG_SIDE_LIMIT as f32 / longer as f32;
    picture.resized(scaled(picture.width, ratio), scaled(picture.height, ratio))
}

/// The picture with borders if it is too long for its other side, and the width of the left and top
/// borders.
fn bordered(picture: Picture) -> (Picture, usize, usize) {
    let border = |side: usize, other: usize| {
        let wanted = 2 * (other / ASPECT_LIMIT).max(SIZE_STEP);
        if side <= SIZE_STEP || other > ASPECT_LIMIT * side {
            wanted.saturating_sub(side).div_ceil(2)
        } else {
            0
        }
    };
    let top = border(picture.height, picture.width);
    let left = border(picture.width, picture.height);
    if (left, top) == (0, 0) {
        return (picture, 0, 0);
    }
    let (width, height) = (picture.width + 2 * left, picture.height + 2 * top);
    let mut bordered = Picture::filled(width, height, 0);
    let rows = picture.pixels.chunks_exact(3 * picture.width);
    for (y, row) in rows.enumerate() {
        let start = 3 * ((y + top) * width + left);
        bordered.pixels[start..start + row.len()].copy_from_slice(row);
    }
    (bordered, left, top)
}

/// The nearest size that the network supports.
fn scaled(size: usize, ratio: f32) -> usize {
    let scaled = (size as f32 * ratio).floor();
    ((scaled / SIZE_STEP as f32).round() as usize).max(1) * SIZE_STEP
}

/// Values from -1 to 1, blue first, as the network was trained.
fn normalized(picture: &Picture) -> NdTensor<f32, 4> {
    let size = picture.width * picture.height;
    let mut values = vec![0.0; 3 * size];
    for (place, pixel) in picture.pixels.chunks_exact(3).enumerate() {
        for (plane, value) in pixel.iter().rev().enumerate() {
            values[plane * size + place] = f32::from(*value) / 127.5 - 1.0;
        }
    }
    NdTensor::from_data([1, 3, picture.height, picture.width], values)
}
