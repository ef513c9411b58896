//! Detects lines that are upside down.

use quintet_kernel::port::SenseError;
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::crop::normalize;
use crate::network::Network;
use crate::picture::Picture;
use crate::worker::failed;

const LINE_HEIGHT: usize = 48;
const LINE_WIDTH: usize = 192;
/// A line with at least this probability may be upside down.
const UPSIDE_DOWN_THRESHOLD: f32 = 0.5;

pub(super) struct AngleClassifier {
    network: Network,
}

impl AngleClassifier {
    pub(super) fn new(network: Network) -> Self {
        Self { network }
    }

    /// For each line, true if it may be upside down. The network is often wrong about letters with similar
    /// ends, so the caller reads such a line both ways.
    pub(super) fn may_be_upside_down(&self, lines: &[Picture]) -> Result<Vec<bool>, SenseError> {
        let size = 3 * LINE_HEIGHT * LINE_WIDTH;
        let mut batch = vec![0.0; lines.len() * size];
        for (line, place) in lines.iter().zip(batch.chunks_exact_mut(size)) {
            normalize(line, LINE_HEIGHT, LINE_WIDTH, place);
        }
        let input = NdTensor::from_data([lines.len(), 3, LINE_HEIGHT, LINE_WIDTH], batch);
        let output = self.network.run(vec![input.view().into()])?;
        if output.shape() != [lines.len(), 2] {
            return Err(failed("the angle model gave another number of answers"));
        }
        let answers = output.to_vec();
        Ok(answers.chunks_exact(2).map(|answer| answer[1] > UPSIDE_DOWN_THRESHOLD).collect())
    }
}
