//! Points, convex hulls and the smallest rectangle around points.

/// A point in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f32,
    pub(super) y: f32,
}

impl Point {
    pub(super) fn new(x: f32, y: f32) -> Self {
        Self { x, y }
    }

    pub(super) fn distance(self, other: Self) -> f32 {
        (self.x - other.x).hypot(self.y - other.y)
    }
}

/// A rectangle at any angle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rectangle {
    pub(super) centre: Point,
    /// The direction of the width, of length 1.
    pub(super) axis: Point,
    pub(super) width: f32,
    pub(super) height: f32,
}

impl Rectangle {
    pub(super) fn shorter_side(&self) -> f32 {
        self.width.min(self.height)
    }

    /// The same rectangle with every side moved outwards.
    pub(super) fn grown(self, distance: f32) -> Self {
        Self { width: self.width + 2.0 * distance, height: self.height + 2.0 * distance, ..self }
    }

    /// Upper left, upper right, lower right, lower left.
    pub(super) fn corners(&self) -> [Point; 4] {
        let (w, h) = (self.width / 2.0, self.height / 2.0);
        let Point { x, y } = self.axis;
        let corner = |along: f32, across: f32| {
            Point::new(
                self.centre.x + along * x - across * y,
                self.centre.y + along * y + across * x,
            )
        };
        clockwise([corner(-w, -h), corner(w, -h), corner(w, h), corner(-w, h)])
    }
}

/// Orders corners: upper left, upper right, lower right, lower left.
fn clockwise(mut corners: [Point; 4]) -> [Point; 4] {
    corners.sort_by(|a, b| a.x.total_cmp(&b.x));
    let [a, b, c, d] = corners;
    let (upper_left, lower_left) = if a.y <= b.y { (a, b) } else { (b, a) };
    let (upper_right, lower_right) = if c.y <= d.y { (c, d) } else { (d, c) };
    [upper_left, upper_right, lower_right, lower_left]
}

/// The corners of the convex hull. The points must be sorted by `x`, then `y`.
fn hull(points: &[Point]) -> Vec<Point> {
    let turn = |a: Point, b: Point, c: Point| (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
    let half = |points: &mut dyn Iterator<Item = Point>| {
        let mut hull: Vec<Point> = Vec::new();
        for point in points {
            while let [.., a, b] = hull[..]
                && turn(a, b, point) <= 0.0
            {
                hull.pop();
            }
            hull.push(point);
        }
        hull.pop();
        hull
    };
    let mut hull =
        [half(&mut points.iter().copied()), half(&mut points.iter().rev().copied())].concat();
    hull.dedup();
    hull
}

/// The rectangle of least area around points; `None` if there are none.
pub(super) fn smallest_rectangle(mut points: Vec<Point>) -> Option<Rectangle> {
    points.sort_by(|a, b| a.x.total_cmp(&b.x).then(a.y.total_cmp(&b.y)));
    points.dedup();
    let first = *points.first()?;
    let hull = hull(&points);
    let corners = if hull.is_empty() { vec![first] } else { hull };
    // One side of the smallest rectangle lies on a side of the hull.
    let sides = corners.iter().zip(corners.iter().cycle().skip(1)).map(|(a, b)| {
        let length = a.distance(*b);
        if length > 0.0 {
            Point::new((b.x - a.x) / length, (b.y - a.y) / length)
        } else {
            Point::new(1.0, 0.0)
        }
    });
    let around = |axis: Point| rectangle_along(&corners, axis);
    sides.map(around).min_by(|a, b| (a.width * a.height).total_cmp(&(b.width * b.height)))
}

/// The rectangle around points whose width lies in a direction.
fn rectangle_along(points: &[Point], axis: Point) -> Rectangle {
    let range = |project: &dyn Fn(&Point) -> f32| {
        points
            .iter()
            .map(project)
            .fold((f32::MAX, f32::MIN), |(low, high), value| (low.min(value), high.max(value)))
    };
    let along = range(&|point| point.x * axis.x + point.y * axis.y);
    let across = range(&|point| point.y * axis.x - point.x * axis.y);
    let (u, v) = (f32::midpoint(along.0, along.1), f32::midpoint(across.0, across.1));
    Rectangle {
        centre: Point::new(u * axis.x - v * axis.y, u * axis.y + v * axis.x),
        axis,
        width: along.1 - along.0,
        height: across.1 - across.0,
    }
}

#[cfg(test)]
mod tests;
