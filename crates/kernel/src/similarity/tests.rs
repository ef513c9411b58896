//! Tests that scores equal those of Python, which are in `ratios.json`, made by `ratios.py`.

use serde_json::Value;

use super::*;

#[test]
fn scores_equal_those_of_python() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("ratios.json")).unwrap();
    assert!(cases.len() > 100);
    for case in cases {
        let (a, b) = (case["a"].as_str().unwrap(), case["b"].as_str().unwrap());
        assert_eq!(normalized(a), case["a_normalized"].as_str().unwrap(), "{a:?}");
        assert_eq!(normalized(b), case["b_normalized"].as_str().unwrap(), "{b:?}");
        let expected = case["ratio"].as_str().unwrap().parse::<f64>().unwrap();
        let got = ratio(&normalized(a), &normalized(b));
        assert_eq!(got.to_bits(), expected.to_bits(), "{a:?} {b:?}: {got} instead of {expected}");
    }
}

#[test]
fn the_order_of_the_texts_matters_and_empty_ones_are_equal() {
    assert_eq!(ratio("", "").to_bits(), 1f64.to_bits());
    assert_eq!(ratio("a", "").to_bits(), 0f64.to_bits());
    assert!((ratio("tide", "diet") - 0.25).abs() < f64::EPSILON);
    assert!((ratio("diet", "tide") - 0.5).abs() < f64::EPSILON);
}
