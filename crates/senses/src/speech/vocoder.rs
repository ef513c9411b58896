//! Computes the waveform from the spectrum of the voice's network: 80 frames per second, 24 kHz.
//!
//! A pulse train at the voice's pitch is shaped by the harmonic part, noise by the noise part, and
//! a part with its own phases is added; an inverse short-time Fourier transform gives the waveform.

use std::f32::consts::PI;
use std::sync::Arc;

use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};

/// Samples per second.
pub(super) const SAMPLE_RATE: u32 = 24_000;
/// Samples of a frame's window.
const WINDOW_SAMPLES: usize = 1200;
/// Samples between two frames.
const HOP_SAMPLES: usize = 300;
/// Frequencies of a frame.
const BINS: usize = WINDOW_SAMPLES / 2 + 1;
/// The pitch below which a frame is unvoiced, in Hz.
const PITCH_MINIMUM_HZ: f32 = 40.0;
/// Harmonics above this frequency are left out, in Hz.
const HARMONICS_LIMIT_HZ: f32 = 11_000.0;
/// Maximum logarithm of an amplitude.
const LOG_LIMIT: f32 = 7.0;

/// The network's output: for each frequency a row of frames, and the pitch of each frame.
#[derive(Debug)]
pub(super) struct Spectrum {
    /// The logarithm of the amplitude of the voice.
    pub(super) harmonics: Vec<f32>,
    /// The phase of the voice, before tanh.
    pub(super) theta: Vec<f32>,
    /// The logarithm of the amplitude of noise.
    pub(super) noise: Vec<f32>,
    /// The logarithm of the amplitude of the free part.
    pub(super) free: Vec<f32>,
    /// The phase of the free part.
    pub(super) phi: Vec<f32>,
    /// The pitch of each frame in Hz.
    pub(super) pitch: Vec<f32>,
}

/// The planned Fourier transforms.
pub(super) struct Vocoder {
    forward: Arc<dyn Fft<f32>>,
    inverse: Arc<dyn Fft<f32>>,
    window: Vec<f32>,
}

impl Vocoder {
    pub(super) fn new() -> Self {
        let mut planner = FftPlanner::new();
        let angle = |n: usize| 2.0 * PI * n as f32 / WINDOW_SAMPLES as f32;
        Self {
            forward: planner.plan_fft_forward(WINDOW_SAMPLES),
            inverse: planner.plan_fft_inverse(WINDOW_SAMPLES),
            window: (0..WINDOW_SAMPLES).map(|n| 0.5 - 0.5 * angle(n).cos()).collect(),
        }
    }

    /// The waveform; `None` if the parts of the spectrum do not have matching sizes.
    pub(super) fn wave(&self, spectrum: &Spectrum) -> Option<Vec<f32>> {
        let frames = spectrum.pitch.len();
        let Spectrum { harmonics, theta, noise, free, phi, .. } = spectrum;
        if frames == 0
            || [harmonics, theta, noise, free, phi].iter().any(|part| part.len() != frames * BINS)
        {
            return None;
        }
        let pulses = pulses(&spectrum.pitch);
        let mut random = Noise(0x9E37_79B9_7F4A_7C15);
        let mut wave = vec![0.0; (frames + 3) * HOP_SAMPLES];
        let mut weights = vec![0.0; wave.len()];
        let mut buffer = vec![Complex::default(); WINDOW_SAMPLES];
        for frame in 0..frames {
            for (n, slot) in buffer.iter_mut().enumerate() {
                let pulse = reflected(
                    &pulses,
                    (frame * HOP_SAMPLES + n) as isize - WINDOW_SAMPLES as isize / 2,
                );
                *slot = Complex::new(pulse * self.window[n] / HOP_SAMPLES as f32, 0.0);
            }
            self.forward.process(&mut buffer);
            for (bin, slot) in buffer[..BINS].iter_mut().enumerate() {
                *slot = spectrum.shape(*slot, bin * frames + frame, random.next());
            }
            buffer[0].im = 0.0;
            buffer[BINS - 1].im = 0.0;
            for bin in 1..BINS - 1 {
                buffer[WINDOW_SAMPLES - bin] = buffer[bin].conj();
            }
            self.inverse.process(&mut buffer);
            for (n, value) in buffer.iter().enumerate() {
                wave[frame * HOP_SAMPLES + n] += value.re / WINDOW_SAMPLES as f32 * self.window[n];
                weights[frame * HOP_SAMPLES + n] += self.window[n] * self.window[n];
            }
        }
        let middle = WINDOW_SAMPLES / 2..WINDOW_SAMPLES / 2 + frames * HOP_SAMPLES;
        let samples = wave[middle.clone()].iter().zip(&weights[middle]);
        Some(samples.map(|(sample, weight)| sample / weight.max(1e-11)).collect())
    }
}

impl Spectrum {
    /// One frequency of one frame: pulses, noise and the free part.
    fn shape(&self, pulse: Complex<f32>, at: usize, noise: Complex<f32>) -> Complex<f32> {
        let amplitude = |logarithm: f32| logarithm.min(LOG_LIMIT).exp();
        pulse * Complex::from_polar(amplitude(self.harmonics[at]), self.theta[at].tanh() * PI)
            + noise * amplitude(self.noise[at])
            + Complex::from_polar(amplitude(self.free[at]), self.phi[at])
    }
}

/// A pulse train with all harmonics below a limit, silent in unvoiced frames.
fn pulses(pitch: &[f32]) -> Vec<f32> {
    let last = pitch.len() - 1;
    let mut phase = 0.0f64;
    let sample = |n: usize| {
        let position = (n as f32 + 0.5) / HOP_SAMPLES as f32 - 0.5;
        let (before, part) = (position.floor(), position - position.floor());
        let frame = |at: f32| pitch[(at.max(0.0) as usize).min(last)];
        let frequency = frame(before) * (1.0 - part) + frame(before + 1.0) * part;
        let is_voiced = frequency > PITCH_MINIMUM_HZ;
        let frequency = frequency.max(PITCH_MINIMUM_HZ);
        phase = (phase + f64::from(frequency) / f64::from(SAMPLE_RATE)).fract();
        if !is_voiced {
            return 0.0;
        }
        let angle = (phase * std::f64::consts::TAU) as f32;
        let order = (HARMONICS_LIMIT_HZ / frequency).floor() + 0.5;
        let divisor = 2.0 * (angle * 0.5).sin();
        let sum = if divisor.abs() <= 2e-3 { order } else { (order * angle).sin() / divisor };
        sum - 0.5
    };
    (0..pitch.len() * HOP_SAMPLES).map(sample).collect()
}

/// The sample at a position; beyond its ends the waveform is mirrored.
fn reflected(wave: &[f32], at: isize) -> f32 {
    let last = wave.len() as isize - 1;
    let at = at.abs();
    let at = if at > last { 2 * last - at } else { at };
    wave[at.clamp(0, last) as usize]
}

/// Normally distributed numbers, the same for every sentence.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> Complex<f32> {
        let (first, second) = (self.uniform(), self.uniform());
        Complex::from_polar((-2.0 * first.ln()).sqrt(), 2.0 * PI * second)
    }

    fn uniform(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 40) as f32 + 0.5) / (1u64 << 24) as f32
    }
}
