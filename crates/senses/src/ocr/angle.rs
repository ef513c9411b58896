//! Finds lines that are upside down.

use quintet_kernel::port::SenseError;
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::crop::normalize;
use crate::network::Network;
use crate::picture::Picture;
use crate::worker::failed;

const HEIGHT: usize = 48;
const WIDTH: usize = 192;
/// A line may be upside down if the network gives it this.
const THRESHOLD: f32 = 0.5;

pub(super) struct Angle {
    network: Network,
}

impl Angle {
    pub(super) fn new(network: Network) -> Self {
        Self { network }
    }

    /// Says of each line whether it may be upside down. The network is often wrong about letters with
    /// like ends, so the caller reads such a line both ways.
    pub(super) fn suspects(&self, lines: &[Picture]) -> Result<Vec<bool>, SenseError> {
        let size = 3 * HEIGHT * WIDTH;
        let mut batch = vec![0.0; lines.len() * size];
        for (line, place) in lines.iter().zip(batch.chunks_exact_mut(size)) {
            normalize(line, HEIGHT, WIDTH, place);
        }
        let input = NdTensor::from_data([lines.len(), 3, HEIGHT, WIDTH], batch);
        let output = self.network.run(vec![input.view().into()])?;
        if output.shape() != [lines.len(), 2] {
            return Err(failed("the angle model gave another number of answers"));
        }
        let answers = output.to_vec();
        Ok(answers.chunks_exact(2).map(|answer| answer[1] > THRESHOLD).collect())
    }
}
