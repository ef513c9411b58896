//! Regions of a probability map: connected pixels that are probably text.

use super::geometry::{Point, Rectangle, smallest_rectangle};

/// A pixel above this probability is text.
const PIXEL_THRESHOLD: f32 = 0.3;
/// A region with a lower mean is not text.
const REGION_THRESHOLD: f32 = 0.5;
/// The network finds the inner part of a line; a region grows by this factor times its area divided
/// by its perimeter.
const GROWTH_FACTOR: f32 = 1.6;
/// Regions with a shorter side are dropped, before and after growing.
const SIDE_MINIMUM: f32 = 3.0;
const GROWN_SIDE_MINIMUM: f32 = 5.0;
/// Maximum number of examined regions. Bounds the work for a noisy picture.
const REGIONS_LIMIT: usize = 3000;

/// Maximum number of recognized lines. Bounds the time for a picture full of marks.
const LINES_LIMIT: usize = 1000;

/// The probability of text for each pixel.
pub(super) struct Map {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) values: Vec<f32>,
}

impl Map {
    /// Rectangles around lines of text.
    pub(super) fn rectangles(&self) -> Vec<Rectangle> {
        let regions = Regions::new(self).take(REGIONS_LIMIT).filter_map(smallest_rectangle);
        let large = regions.filter(|rectangle| rectangle.shorter_side() >= SIDE_MINIMUM);
        let probable = large.filter(|rectangle| self.mean(rectangle) >= REGION_THRESHOLD);
        let grown = probable.map(|rectangle| {
            let Rectangle { width, height, .. } = rectangle;
            rectangle.grown(width * height * GROWTH_FACTOR / (2.0 * (width + height)))
        });
        let lines = grown.filter(|rectangle| rectangle.shorter_side() >= GROWN_SIDE_MINIMUM);
        lines.take(LINES_LIMIT).collect()
    }

    /// The mean of the pixels in a rectangle.
    fn mean(&self, rectangle: &Rectangle) -> f32 {
        let corners = rectangle.corners();
        let range = |low: f32, high: f32, size: usize| {
            let limit = (size - 1) as f32;
            (low.floor().clamp(0.0, limit) as usize)..=(high.ceil().clamp(0.0, limit) as usize)
        };
        let bound = |of: fn(&Point) -> f32| {
            let values = corners.iter().map(of);
            (values.clone().fold(f32::MAX, f32::min), values.fold(f32::MIN, f32::max))
        };
        let ((left, right), (top, bottom)) = (bound(|point| point.x), bound(|point| point.y));
        let (mut sum, mut count) = (0.0, 0_u32);
        for y in range(top, bottom, self.height) {
            for x in range(left, right, self.width) {
                if contains(rectangle, x as f32, y as f32) {
                    sum += f64::from(self.values[y * self.width + x]);
                    count += 1;
                }
            }
        }
        (sum / f64::from(count.max(1))) as f32
    }
}

/// True if a pixel's centre is in a rectangle or touches its border.
fn contains(rectangle: &Rectangle, x: f32, y: f32) -> bool {
    let (x, y) = (x - rectangle.centre.x, y - rectangle.centre.y);
    let Point { x: ax, y: ay } = rectangle.axis;
    (x * ax + y * ay).abs() <= rectangle.width / 2.0 + 0.5
        && (y * ax - x * ay).abs() <= rectangle.height / 2.0 + 0.5
}

/// Iterates over the regions; each is given as the outermost pixels of its rows.
struct Regions {
    width: usize,
    height: usize,
    /// Text pixels that were not visited yet.
    open: Vec<bool>,
    next: usize,
}

impl Regions {
    fn new(map: &Map) -> Self {
        let (width, height) = (map.width, map.height);
        let text: Vec<bool> = map.values.iter().map(|value| *value > PIXEL_THRESHOLD).collect();
        let mut open = text.clone();
        // Every pixel spreads to the right and down, which joins the letters of a word.
        for y in 0..height {
            for x in 0..width {
                let left = x.saturating_sub(1);
                let above = y.saturating_sub(1);
                open[y * width + x] = text[y * width + x]
                    || text[y * width + left]
                    || text[above * width + x]
                    || text[above * width + left];
            }
        }
        Self { width, height, open, next: 0 }
    }

    /// Takes all pixels that are connected with one.
    fn take_region(&mut self, start: usize) -> Vec<Point> {
        let mut rows: std::collections::BTreeMap<usize, (usize, usize)> = Default::default();
        let mut pending = vec![start];
        self.open[start] = false;
        while let Some(place) = pending.pop() {
            let (x, y) = (place % self.width, place / self.width);
            let row = rows.entry(y).or_insert((x, x));
            *row = (row.0.min(x), row.1.max(x));
            for y in y.saturating_sub(1)..=(y + 1).min(self.height - 1) {
                for x in x.saturating_sub(1)..=(x + 1).min(self.width - 1) {
                    let place = y * self.width + x;
                    if std::mem::take(&mut self.open[place]) {
                        pending.push(place);
                    }
                }
            }
        }
        let ends = rows.into_iter().flat_map(|(y, (left, right))| [(left, y), (right, y)]);
        ends.map(|(x, y)| Point::new(x as f32, y as f32)).collect()
    }
}

impl Iterator for Regions {
    type Item = Vec<Point>;

    fn next(&mut self) -> Option<Vec<Point>> {
        let found = self.open[self.next..].iter().position(|open| *open)?;
        self.next += found;
        Some(self.take_region(self.next))
    }
}

#[cfg(test)]
mod tests;
