//! Tests of deeply nested values.

use serde_json::json;

use super::*;

/// A value with this many levels.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("core"), |value, _| json!([value]))
}

#[test]
fn only_levels_beyond_the_limit_are_removed() {
    for levels in [0, 1, 50, LEVELS_LIMIT] {
        let mut value = nested(levels);
        cut(&mut value);
        assert_eq!(value, nested(levels));
    }
    let mut value = json!({ "deep": nested(120), "flat": 1 });
    cut(&mut value);
    assert_eq!((depth(&value), &value["flat"]), (LEVELS_LIMIT, &json!(1)));
    let mut map = Map::from_iter([("deep".to_owned(), nested(120))]);
    cut_values(&mut map);
    assert_eq!(depth(&map["deep"]), LEVELS_LIMIT);
}
