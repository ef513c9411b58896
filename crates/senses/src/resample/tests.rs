//! Tests that tones keep their pitch and level, whatever the rates and the size of the pieces.

use std::f64::consts::TAU;

use super::Resampler;

fn tone(frequency: f64, rate: u32, seconds: f64) -> Vec<f32> {
    let samples = (f64::from(rate) * seconds) as usize;
    let sample = |n: usize| (TAU * frequency * n as f64 / f64::from(rate)).sin() as f32 * 0.5;
    (0..samples).map(sample).collect()
}

fn convert(input: &[f32], from: u32, to: u32, piece: usize) -> Vec<f32> {
    let mut resampler = Resampler::new(from, to).unwrap();
    let mut output: Vec<f32> =
        input.chunks(piece).flat_map(|piece| resampler.push(piece)).collect();
    output.extend(resampler.finish());
    output
}

#[track_caller]
fn check(from: u32, to: u32) {
    let output = convert(&tone(440.0, from, 0.5), from, to, 333);
    let expected = tone(440.0, to, 0.5);
    assert!(output.len().abs_diff(expected.len()) <= 1, "{from} to {to}: {}", output.len());
    let middle = expected.len() / 4..expected.len() * 3 / 4;
    let error = middle.map(|n| (output[n] - expected[n]).abs()).fold(0.0, f32::max);
    assert!(error < 2e-3, "{from} to {to}: off by {error}");
}

#[test]
fn a_tone_keeps_its_pitch_and_level() {
    for from in [4_000, 8_000, 11_025, 16_000, 22_050, 24_000, 44_100, 48_000, 96_000, 384_000] {
        check(from, 16_000);
    }
    check(24_000, 48_000);
}

#[test]
fn a_tone_above_the_new_range_is_removed() {
    let output = convert(&tone(15_000.0, 48_000, 0.2), 48_000, 16_000, 480);
    let level = output[400..2800].iter().fold(0.0f32, |peak, x| peak.max(x.abs()));
    assert!(level < 1e-3, "{level}");
}

#[test]
fn the_size_of_the_pieces_does_not_matter() {
    let input = tone(300.0, 44_100, 0.2);
    let whole = convert(&input, 44_100, 16_000, usize::MAX);
    assert_eq!(whole, convert(&input, 44_100, 16_000, 1));
}

#[test]
fn unsupported_rates_are_refused() {
    for rate in [0, 1, 3_999, 384_001, 10_000_000, u32::MAX] {
        let error = Resampler::new(rate, 16_000).unwrap_err().to_string();
        assert!(error.contains(&rate.to_string()), "{error}");
    }
}
