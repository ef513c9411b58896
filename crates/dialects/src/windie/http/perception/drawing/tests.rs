//! Marks are where they should be, and nowhere else.

use super::*;

const WHITE: Rgb<u8> = Rgb([255, 255, 255]);

/// Draws one mark on a small white picture and shows which pixels have its color.
fn drawn(width: u32, height: u32, shape: MarkShape, label: Option<&str>) -> String {
    let mut image = RgbImage::from_pixel(width, height, WHITE);
    draw(&mut image, &[Mark { shape, color: BOX_COLOR, label: label.map(String::from) }]);
    let row = |y: u32| -> String {
        (0..width).map(|x| if *image.get_pixel(x, y) == WHITE { '.' } else { '#' }).collect()
    };
    (0..height).map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_outline_is_three_pixels_thick_and_clipped() {
    let shape = MarkShape::Box { x: 1, y: 1, width: 8, height: 7, center: None };
    let expected = "...........\n.#########.\n.#########.\n.#########.\n.###...###.\n.###...###.\n\
                    .#########.\n.#########.\n.#########.\n...........";
    assert_eq!(drawn(11, 10, shape, None), expected);
    let shape = MarkShape::Box { x: -5, y: 2, width: i64::MAX, height: i64::MAX, center: None };
    assert_eq!(drawn(3, 6, shape, None), "...\n...\n###\n###\n###\n...");
}

#[test]
fn dots_have_their_radius() {
    let dot = drawn(13, 13, MarkShape::Point { x: 6, y: 6 }, None);
    let rows: Vec<&str> = dot.lines().collect();
    assert_eq!((rows[0], rows[6]), ("....#####....", "#############"));
    let box_dot = MarkShape::Box { x: 90, y: 90, width: 1, height: 1, center: Some((4, 4)) };
    let dot = drawn(9, 9, box_dot, None);
    let rows: Vec<&str> = dot.lines().collect();
    assert_eq!((rows[0], rows[4]), ("..#####..", "#########"));
}

#[test]
fn labels_are_written_and_end_at_the_edge() {
    let far = MarkShape::Box { x: -4, y: 90, width: 1, height: 1, center: None };
    let written = drawn(10, 92, far, Some("L\u{4e2d}"));
    let rows: Vec<&str> = written.lines().collect();
    assert_eq!(rows[76], "##........");
    assert_eq!(rows[88], "##########");
    assert_eq!(rows[75], "..........");
}
