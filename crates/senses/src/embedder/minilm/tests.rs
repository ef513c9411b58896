//! Tests that the model's output is checked.

use quintet_kernel::port::SenseError;

use super::{Tokens, normalized, run_length};

#[test]
fn invalid_numbers_are_an_error() {
    for bad in [f32::NAN, f32::INFINITY, 0.0] {
        assert!(matches!(normalized(&[bad, bad]), Err(SenseError::Failed(_))));
    }
    assert_eq!(normalized(&[3.0, 4.0]), Ok(vec![0.6, 0.8]));
}

#[test]
fn a_run_is_bounded_by_its_tokens() {
    let texts = |lengths: &[usize]| -> Vec<Tokens> {
        let tokens = |(place, length): (usize, &usize)| Tokens { place, ids: vec![0; *length] };
        lengths.iter().enumerate().map(tokens).collect()
    };
    assert_eq!(run_length(&texts(&[3])), 1);
    assert_eq!(run_length(&texts(&[3, 4, 5])), 3);
    assert_eq!(run_length(&texts(&[256; 20])), 8);
    assert_eq!(run_length(&texts(&[9000, 9000])), 1);
}
