//! Tests of boxes around ink.

use quintet_kernel::port::TextBox;

use super::tightened;
use crate::picture::Picture;

/// Tightens a box of 60 x 20 pixels around ink at the given positions.
#[track_caller]
fn check(ink: &[(usize, usize)], expected: (u32, u32, u32, u32)) {
    let mut picture = Picture::filled(100, 50, 240);
    for (x, y) in ink {
        picture.pixels[3 * (y * 100 + x)..][..3].fill(20);
    }
    let (text, confidence) = (String::new(), 1.0);
    let line = TextBox { text, confidence, x: 10, y: 10, width: 60, height: 20 };
    let found = tightened(&picture, line);
    assert_eq!((found.x, found.y, found.width, found.height), expected);
}

#[test]
fn a_margin_is_removed() {
    check(&[(20, 15), (40, 24)], (20, 15, 21, 10));
}

#[test]
fn a_box_without_enough_ink_is_unchanged() {
    check(&[], (10, 10, 60, 20));
    check(&[(20, 15), (40, 16)], (10, 10, 60, 20));
}

#[test]
fn ink_outside_does_not_count() {
    check(&[(20, 12), (5, 5), (40, 27), (90, 40)], (20, 12, 21, 16));
}
