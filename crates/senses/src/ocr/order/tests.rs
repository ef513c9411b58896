//! Tests of reading order.

use quintet_kernel::port::TextBox;

use super::reading_order;

#[track_caller]
fn check(boxes: &[(&str, u32, u32, u32)], order: &str) {
    let text_box = |(text, x, y, height): &(&str, u32, u32, u32)| TextBox {
        text: (*text).into(),
        confidence: 1.0,
        x: *x,
        y: *y,
        width: 50,
        height: *height,
    };
    let ordered = reading_order(boxes.iter().map(text_box).collect());
    assert_eq!(ordered.iter().map(|line| line.text.as_str()).collect::<String>(), order);
}

#[test]
fn rows_come_before_columns() {
    check(&[("d", 80, 33, 20), ("b", 80, 2, 20), ("c", 5, 30, 20), ("a", 5, 0, 20)], "abcd");
}

#[test]
fn boxes_of_different_height_can_be_in_one_row() {
    check(&[("b", 100, 10, 40), ("a", 0, 20, 20), ("c", 200, 22, 16)], "abc");
}

#[test]
fn slightly_overlapping_lines_are_separate_rows() {
    check(&[("b", 0, 17, 20), ("a", 60, 0, 20), ("c", 0, 34, 20)], "abc");
}
