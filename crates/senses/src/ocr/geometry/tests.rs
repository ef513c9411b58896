//! Tests of rectangles around points.

use super::{Point, smallest_rectangle};

#[track_caller]
fn check(points: &[(f32, f32)], corners: [(f32, f32); 4]) {
    let points = points.iter().map(|(x, y)| Point::new(*x, *y)).collect();
    let found = smallest_rectangle(points).unwrap().corners();
    for (found, (x, y)) in found.iter().zip(corners) {
        assert!(found.distance(Point::new(x, y)) < 1e-3, "{found:?} instead of {x}, {y}");
    }
}

#[test]
fn the_smallest_rectangle_around_a_rectangle_is_itself() {
    let corners = [(1.0, 1.0), (9.0, 1.0), (9.0, 3.0), (1.0, 3.0)];
    check(&[corners[2], corners[0], (5.0, 2.0), corners[1], corners[3]], corners);
}

#[test]
fn the_smallest_rectangle_may_be_tilted() {
    let corners = [(0.0, 2.0), (6.0, 0.0), (7.0, 3.0), (1.0, 5.0)];
    check(&[corners[3], corners[1], (3.0, 2.0), corners[0], corners[2]], corners);
}

#[test]
fn points_and_lines_have_no_area() {
    assert_eq!(smallest_rectangle(Vec::new()), None);
    check(&[(2.0, 3.0)], [(2.0, 3.0); 4]);
    let line = smallest_rectangle(vec![Point::new(0.0, 0.0), Point::new(3.0, 4.0)]).unwrap();
    assert_eq!((line.width.max(line.height), line.shorter_side()), (5.0, 0.0));
}
