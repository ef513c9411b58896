//! Recognizes lines of text.

use quintet_kernel::port::{SenseError, TextBox};
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::angle::AngleClassifier;
use super::crop::{aspect, crop, normalize};
use super::detect::Quad;
use crate::network::Network;
use crate::picture::Picture;
use crate::worker::failed;

const LINE_HEIGHT: usize = 48;
/// A shorter line is padded to this width. The network was trained with 320, but recognizes short
/// words as well without that much padding, in half the time.
const LINE_WIDTH_MINIMUM: usize = 96;
/// A longer line is compressed to this width.
const LINE_WIDTH_LIMIT: usize = 4800;
/// Lines per batch.
const BATCH_LIMIT: usize = 6;
/// Pixels of width per batch. Bounds memory, because every eighth pixel has a probability for every
/// character.
const BATCH_WIDTH_LIMIT: usize = 4800;
/// A line that is recognized with less confidence is dropped.
const CONFIDENCE_MINIMUM: f32 = 0.5;

/// A line that is recognized with less confidence is also tried upside down.
const CONFIDENCE_DOUBT: f32 = 0.75;
/// A line that is recognized with more confidence is not upside down, whatever the angle model
/// states.
const CONFIDENCE_SURE: f32 = 0.97;

pub(super) struct Recognizer {
    network: Network,
    /// The characters by class; class 0 means no character.
    characters: Vec<String>,
}

/// A recognized line.
struct Line {
    text: String,
    confidence: f32,
}

impl Recognizer {
    pub(super) fn new(network: Network) -> Result<Self, SenseError> {
        let characters = network.metadata("character");
        let characters = characters.ok_or_else(|| failed("the model has no list of characters"))?;
        let characters = characters.lines().chain([" "]).map(str::to_owned);
        let characters = std::iter::once(String::new()).chain(characters).collect();
        Ok(Self { network, characters })
    }

    /// The text of a batch of lines. Lines without text are left out.
    pub(super) fn read(
        &self,
        picture: &Picture,
        quads: &[Quad],
        angle: &AngleClassifier,
    ) -> Result<Vec<TextBox>, SenseError> {
        let lines: Vec<Picture> = quads.iter().map(|quad| crop(picture, quad)).collect();
        let suspects = angle.may_be_upside_down(&lines)?;
        let lines = self.either_way(lines, &suspects)?;
        let read = quads.iter().zip(lines).filter(|(_, line)| {
            line.confidence >= CONFIDENCE_MINIMUM && !line.text.trim().is_empty()
        });
        Ok(read.map(|(quad, line)| text_box(quad, line)).collect())
    }

    /// Recognizes lines. Those that may be upside down and those with low confidence are rotated
    /// and recognized again; the result with more confidence is used.
    fn either_way(&self, lines: Vec<Picture>, suspects: &[bool]) -> Result<Vec<Line>, SenseError> {
        let mut read = self.texts(&lines)?;
        let doubtful = |place: &usize| {
            let needed = if suspects[*place] { CONFIDENCE_SURE } else { CONFIDENCE_DOUBT };
            read[*place].confidence < needed
        };
        let again: Vec<usize> = (0..read.len()).filter(doubtful).collect();
        if again.is_empty() {
            return Ok(read);
        }
        let turned = lines.into_iter().enumerate().filter(|(place, _)| again.contains(place));
        let turned: Vec<Picture> = turned.map(|(_, line)| line.half_turned()).collect();
        for (place, line) in again.into_iter().zip(self.texts(&turned)?) {
            if line.confidence > read[place].confidence {
                read[place] = line;
            }
        }
        Ok(read)
    }

    fn texts(&self, lines: &[Picture]) -> Result<Vec<Line>, SenseError> {
        let widest = lines.iter().map(|line| line.width as f32 / line.height as f32);
        let width = line_width(widest.fold(0.0, f32::max));
        let size = 3 * LINE_HEIGHT * width;
        let mut batch = vec![0.0; lines.len() * size];
        for (line, place) in lines.iter().zip(batch.chunks_exact_mut(size)) {
            normalize(line, LINE_HEIGHT, width, place);
        }
        let input = NdTensor::from_data([lines.len(), 3, LINE_HEIGHT, width], batch);
        let output = self.network.run(vec![input.view().into()])?;
        let &[count, steps, classes] = output.shape() else {
            return Err(failed("the recognition model gave no table"));
        };
        if count != lines.len() || classes != self.characters.len() {
            return Err(failed("the recognition model does not fit its list of characters"));
        }
        let output = output.to_contiguous();
        let values = output.data();
        Ok((0..count)
            .map(|line| self.decode(&values[line * steps * classes..][..steps * classes]))
            .collect())
    }

    /// The best class of every step, without repetitions and class 0. The confidence is the mean of
    /// the remaining ones.
    fn decode(&self, steps: &[f32]) -> Line {
        let (mut text, mut sum, mut count, mut last) = (String::new(), 0.0, 0, 0);
        for step in steps.chunks_exact(self.characters.len()) {
            let (mut class, mut best) = (0, f32::MIN);
            for (place, value) in step.iter().enumerate() {
                if *value > best {
                    (class, best) = (place, *value);
                }
            }
            if class != 0 && class != last {
                text.push_str(&self.characters[class]);
                sum += best;
                count += 1;
            }
            last = class;
        }
        Line { text, confidence: if count == 0 { 0.0 } else { sum / count as f32 } }
    }
}

/// The width of a line for the network.
fn line_width(aspect: f32) -> usize {
    ((LINE_HEIGHT as f32 * aspect) as usize).clamp(LINE_WIDTH_MINIMUM, LINE_WIDTH_LIMIT)
}

/// Divides lines into batches. Lines of similar length are recognized together, to keep the padding
/// short.
pub(super) fn batches(mut quads: Vec<Quad>) -> Vec<Vec<Quad>> {
    quads.sort_by(|a, b| aspect(a).total_cmp(&aspect(b)));
    let mut batches = Vec::new();
    while !quads.is_empty() {
        let later = quads.split_off(batch_length(&quads));
        batches.push(std::mem::replace(&mut quads, later));
    }
    batches
}

/// The number of lines at the front of the list that form a batch.
fn batch_length(quads: &[Quad]) -> usize {
    let fits = |n: &usize| (n + 1) * line_width(aspect(&quads[*n])) <= BATCH_WIDTH_LIMIT;
    (1..quads.len().min(BATCH_LIMIT)).take_while(fits).last().unwrap_or(0) + 1
}

/// The upright rectangle around a line.
fn text_box(quad: &Quad, Line { text, confidence }: Line) -> TextBox {
    let least = |values: [f32; 4]| values.into_iter().fold(f32::MAX, f32::min) as u32;
    let most = |values: [f32; 4]| values.into_iter().fold(0.0, f32::max) as u32;
    let (xs, ys) = (quad.map(|point| point.x), quad.map(|point| point.y));
    let (x, y) = (least(xs), least(ys));
    let (width, height) = (most(xs) - x, most(ys) - y);
    TextBox { text, confidence: confidence.clamp(0.0, 1.0), x, y, width, height }
}
