//! Tests of the beginning and end of utterances, by probabilities alone.

use super::{LEAD_WINDOWS, Segmenter, TRAIL_WINDOWS, WINDOWS_LIMIT};
use crate::vad::WINDOW_SAMPLES;

/// Processes windows; returns the lengths of the utterances in windows, and of the unfinished one.
fn cut(probabilities: &[f32]) -> (Vec<usize>, Option<usize>) {
    let mut segmenter = Segmenter::default();
    let push = |probability: &f32| segmenter.push(&[*probability; WINDOW_SAMPLES], *probability);
    let ended = probabilities.iter().filter_map(push).map(|samples| samples.len() / WINDOW_SAMPLES);
    let ended = ended.collect();
    (ended, segmenter.finish().map(|samples| samples.len() / WINDOW_SAMPLES))
}

fn windows(runs: &[(usize, f32)]) -> Vec<f32> {
    runs.iter().flat_map(|(count, probability)| vec![*probability; *count]).collect()
}

#[test]
fn speech_is_split_at_pauses() {
    let audio = windows(&[(100, 0.1), (20, 0.9), (50, 0.1), (30, 0.8), (40, 0.0)]);
    assert_eq!(
        cut(&audio),
        (vec![LEAD_WINDOWS + 20 + TRAIL_WINDOWS, LEAD_WINDOWS + 30 + TRAIL_WINDOWS], None)
    );
}

#[test]
fn a_short_pause_does_not_end_an_utterance() {
    let audio = windows(&[(20, 0.9), (TRAIL_WINDOWS - 1, 0.1), (20, 0.9), (TRAIL_WINDOWS, 0.1)]);
    assert_eq!(cut(&audio), (vec![40 + 2 * TRAIL_WINDOWS - 1], None));
}

#[test]
fn a_click_is_no_utterance() {
    assert_eq!(cut(&windows(&[(10, 0.1), (2, 0.9), (40, 0.1)])), (vec![], None));
}

#[test]
fn the_end_of_the_audio_ends_the_utterance() {
    assert_eq!(cut(&windows(&[(5, 0.9)])), (vec![], Some(5)));
    assert_eq!(cut(&[]), (vec![], None));
}

#[test]
fn endless_speech_is_split_at_a_quiet_window_without_loss() {
    let mut audio = vec![0.9; 2 * WINDOWS_LIMIT];
    audio[WINDOWS_LIMIT - 40] = 0.6;
    let (ended, left) = cut(&audio);
    assert_eq!(ended[0], WINDOWS_LIMIT - 40);
    assert_eq!(ended.iter().sum::<usize>() + left.unwrap(), audio.len());
}

#[test]
fn silence_is_buffered_only_for_the_lead() {
    let mut segmenter = Segmenter::default();
    for _ in 0..10_000 {
        assert_eq!(segmenter.push(&[0.0; WINDOW_SAMPLES], 0.0), None);
    }
    assert_eq!(segmenter.lead.len(), LEAD_WINDOWS * WINDOW_SAMPLES);
}
