//! Tests of regions in small maps.

use super::Map;

/// A map with rectangles of a probability: left, top, width, height, value.
fn map(width: usize, height: usize, filled: &[(usize, usize, usize, usize, f32)]) -> Map {
    let mut values = vec![0.0; width * height];
    for (left, top, w, h, value) in filled {
        for y in *top..top + h {
            values[y * width + left..][..*w].fill(*value);
        }
    }
    Map { width, height, values }
}

#[test]
fn a_line_grows_to_its_full_height() {
    let found = map(200, 60, &[(20, 20, 100, 10, 0.9)]).rectangles();
    let [line] = found[..] else { panic!("{found:?}") };
    let [a, _, c, _] = line.corners();
    // 100 x 10 pixels and the spread by one: the region grows by about 7.3 on every side.
    assert!((a.x - 12.7).abs() < 0.1 && (a.y - 12.7).abs() < 0.1, "{a:?}");
    assert!((c.x - 127.3).abs() < 0.1 && (c.y - 37.3).abs() < 0.1, "{c:?}");
}

#[test]
fn faint_and_tiny_regions_are_no_text() {
    let map = map(100, 60, &[(10, 10, 30, 10, 0.4), (60, 10, 1, 1, 0.9), (60, 30, 30, 2, 0.95)]);
    assert!(map.rectangles().is_empty());
}

#[test]
fn neighbours_at_a_corner_are_one_region() {
    let touching = map(100, 60, &[(10, 10, 20, 10, 0.9), (30, 20, 20, 10, 0.9)]);
    assert!(touching.rectangles().len() <= 1);
    let apart = map(100, 60, &[(10, 10, 20, 10, 0.9), (40, 30, 20, 10, 0.9)]);
    assert_eq!(apart.rectangles().len(), 2);
}

#[test]
fn a_map_of_noise_is_bounded() {
    let mut values = vec![0.0; 1000 * 1000];
    values.iter_mut().step_by(3).for_each(|value| *value = 1.0);
    assert!(Map { width: 1000, height: 1000, values }.rectangles().len() <= super::REGIONS_LIMIT);
    assert!(map(1, 1, &[(0, 0, 1, 1, 1.0)]).rectangles().is_empty());
}
