//! Changes the sample rate of a stream of audio.
//!
//! Each output sample is the sum of the input around it, weighted by a sinc under a Kaiser window.
//! Its cutoff is below half of the lower of both rates, so that there is no aliasing.

use std::f64::consts::PI;

use quintet_kernel::port::SenseError;

/// Supported sample rates.
pub(crate) const SAMPLE_RATES: std::ops::RangeInclusive<u32> = 4_000..=384_000;

/// Zero crossings of the sinc on each side.
const CROSSINGS_PER_SIDE: usize = 16;
/// Entries of the table between two zero crossings.
const STEPS_PER_CROSSING: usize = 256;
/// The shape of the Kaiser window: about 80 dB of attenuation.
const KAISER_BETA: f64 = 8.0;
/// The cutoff as a share of half of the lower rate.
const PASSBAND: f64 = 0.95;

/// A converter from one rate to another; buffers the part of the audio that it still needs.
#[derive(Debug)]
pub(crate) struct Resampler {
    from: u32,
    to: u32,
    /// One side of the weights, [`STEPS_PER_CROSSING`] entries for each zero crossing.
    table: Vec<f32>,
    /// The cutoff in cycles of half the input rate.
    cutoff: f64,
    /// Input that is still needed.
    input: Vec<f32>,
    /// The position of the next output sample in the input.
    position: f64,
}

impl Resampler {
    /// Fails if a rate is outside [`SAMPLE_RATES`].
    pub(crate) fn new(from: u32, to: u32) -> Result<Self, SenseError> {
        if let Some(rate) = [from, to].into_iter().find(|rate| !SAMPLE_RATES.contains(rate)) {
            return Err(SenseError::BadInput(format!(
                "a sample rate of {rate} is not supported: it must be from {} to {}",
                SAMPLE_RATES.start(),
                SAMPLE_RATES.end()
            )));
        }
        let cutoff = PASSBAND * (f64::from(to) / f64::from(from)).min(1.0);
        let table = (0..=CROSSINGS_PER_SIDE * STEPS_PER_CROSSING)
            .map(|step| weight(step as f64 / STEPS_PER_CROSSING as f64) as f32);
        let mut resampler =
            Self { from, to, table: table.collect(), cutoff, input: Vec::new(), position: 0.0 };
        // Silence before the beginning, so that the first output sample is at the first input
        // sample.
        resampler.input = vec![0.0; resampler.reach()];
        resampler.position = resampler.reach() as f64;
        Ok(resampler)
    }

    /// The rate of the input.
    pub(crate) fn from(&self) -> u32 {
        self.from
    }

    /// Adds input and returns the output that it completes.
    pub(crate) fn push(&mut self, samples: &[f32]) -> Vec<f32> {
        if self.from == self.to {
            return samples.to_vec();
        }
        self.input.extend_from_slice(samples);
        let reach = self.reach();
        let step = f64::from(self.from) / f64::from(self.to);
        let mut output = Vec::with_capacity((samples.len() as f64 / step) as usize + 1);
        while self.position as usize + reach < self.input.len() {
            output.push(self.sample(reach));
            self.position += step;
        }
        let used = (self.position as usize).saturating_sub(reach).min(self.input.len());
        self.input.drain(..used);
        self.position -= used as f64;
        output
    }

    /// The output that the end of the input completes. Nothing may be pushed afterwards.
    pub(crate) fn finish(&mut self) -> Vec<f32> {
        if self.from == self.to {
            return Vec::new();
        }
        self.push(&vec![0.0; self.reach()])
    }

    /// Number of input samples on each side that an output sample depends on.
    fn reach(&self) -> usize {
        (CROSSINGS_PER_SIDE as f64 / self.cutoff).ceil() as usize + 1
    }

    fn sample(&self, reach: usize) -> f32 {
        let centre = self.position as usize;
        let sum: f32 = (centre + 1 - reach.min(centre + 1)..centre + reach)
            .map(|at| {
                let distance =
                    (at as f64 - self.position).abs() * self.cutoff * STEPS_PER_CROSSING as f64;
                let (step, rest) = (distance as usize, distance.fract() as f32);
                match (self.table.get(step), self.table.get(step + 1)) {
                    (Some(this), Some(next)) => self.input[at] * (this + (next - this) * rest),
                    (None, _) | (_, None) => 0.0,
                }
            })
            .sum();
        sum * self.cutoff as f32
    }
}

/// The weight of a sample at this distance, in zero crossings.
fn weight(crossings: f64) -> f64 {
    let sinc = if crossings == 0.0 { 1.0 } else { (PI * crossings).sin() / (PI * crossings) };
    let ratio = crossings / CROSSINGS_PER_SIDE as f64;
    sinc * bessel(KAISER_BETA * (1.0 - ratio * ratio).max(0.0).sqrt()) / bessel(KAISER_BETA)
}

/// The modified Bessel function of order zero.
fn bessel(x: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for k in 1..40 {
        term *= (x / (2.0 * f64::from(k))).powi(2);
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests;
