//! Splits audio into utterances at the beginning and end of speech.

use std::collections::VecDeque;

use crate::vad::WINDOW_SAMPLES;

/// Speech begins at this probability.
const SPEECH_THRESHOLD: f32 = 0.5;
/// A window below this probability is a pause.
const PAUSE_THRESHOLD: f32 = 0.35;
/// Windows before the first of speech that belong to the utterance: 300 ms.
const LEAD_WINDOWS: usize = 10;
/// Windows of pause that end an utterance: 500 ms.
const TRAIL_WINDOWS: usize = 16;
/// Minimum windows of speech in an utterance; a click has fewer.
const SPEECH_WINDOWS_MINIMUM: usize = 3;
/// A longer utterance is split: 15 s.
const WINDOWS_LIMIT: usize = 468;
/// The windows at the end of such an utterance in which the split point is searched: 3 s.
const CUT_RANGE_WINDOWS: usize = 94;

/// The audio of the current utterance, and the audio before the next one.
#[derive(Debug, Default)]
pub(super) struct Segmenter {
    /// The last windows before speech.
    lead: VecDeque<f32>,
    utterance: Option<Utterance>,
}

#[derive(Debug, Default)]
struct Utterance {
    samples: Vec<f32>,
    /// The probability of each window of the samples.
    probabilities: Vec<f32>,
    /// Windows of speech.
    speech: usize,
    /// Windows of pause at the end.
    pause: usize,
}

impl Segmenter {
    /// Adds a window; returns the utterance that ends with it.
    pub(super) fn push(&mut self, window: &[f32], probability: f32) -> Option<Vec<f32>> {
        match &mut self.utterance {
            Some(utterance) => {
                utterance.push(window, probability);
                self.cut()
            }
            None => {
                self.wait(window, probability);
                None
            }
        }
    }

    /// The audio of the current utterance, once it has enough speech.
    pub(super) fn current(&self) -> Option<&[f32]> {
        let utterance = self.utterance.as_ref()?;
        (utterance.speech >= SPEECH_WINDOWS_MINIMUM).then_some(&utterance.samples[..])
    }

    /// Ends the current utterance.
    pub(super) fn finish(&mut self) -> Option<Vec<f32>> {
        self.lead.clear();
        self.utterance.take().and_then(Utterance::into_samples)
    }

    fn wait(&mut self, window: &[f32], probability: f32) {
        if probability < SPEECH_THRESHOLD {
            self.lead.extend(window);
            let surplus = self.lead.len().saturating_sub(LEAD_WINDOWS * WINDOW_SAMPLES);
            self.lead.drain(..surplus);
            return;
        }
        let samples: Vec<f32> = std::mem::take(&mut self.lead).into();
        let probabilities = vec![0.0; samples.len() / WINDOW_SAMPLES];
        let mut utterance = Utterance { samples, probabilities, ..Utterance::default() };
        utterance.push(window, probability);
        self.utterance = Some(utterance);
    }

    fn cut(&mut self) -> Option<Vec<f32>> {
        let utterance = self.utterance.as_mut()?;
        if utterance.pause >= TRAIL_WINDOWS {
            return self.utterance.take().and_then(Utterance::into_samples);
        }
        if utterance.probabilities.len() < WINDOWS_LIMIT {
            return None;
        }
        let rest = utterance.split();
        std::mem::replace(utterance, rest).into_samples()
    }
}

impl Utterance {
    fn push(&mut self, window: &[f32], probability: f32) {
        self.samples.extend_from_slice(window);
        self.probabilities.push(probability);
        self.speech += usize::from(probability >= SPEECH_THRESHOLD);
        self.pause = if probability < PAUSE_THRESHOLD { self.pause + 1 } else { 0 };
    }

    fn into_samples(self) -> Option<Vec<f32>> {
        (self.speech >= SPEECH_WINDOWS_MINIMUM).then_some(self.samples)
    }

    /// Splits the utterance at the quietest of its last windows; returns what follows.
    fn split(&mut self) -> Self {
        let start = self.probabilities.len() - CUT_RANGE_WINDOWS;
        let late = self.probabilities[start..].iter().enumerate();
        let quietest = late.min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(at, _)| at);
        let (samples, probabilities) = (self.samples.clone(), self.probabilities.clone());
        *self = Self::default();
        let mut rest = Self::default();
        for (at, window) in samples.chunks_exact(WINDOW_SAMPLES).enumerate() {
            let part = if at < start + quietest { &mut *self } else { &mut rest };
            part.push(window, probabilities[at]);
        }
        rest
    }
}

#[cfg(test)]
mod tests;
