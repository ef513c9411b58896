//! Text in pictures, recognized on this machine by PP-OCRv6.
//!
//! `detect` finds the lines, `angle` suspects those that are upside down, `recognize` reads them,
//! `tighten` shrinks their boxes to the ink.

mod angle;
mod crop;
mod detect;
mod geometry;
mod order;
mod recognize;
mod regions;
mod tighten;

use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Ocr, RecognizedText, SenseError};
use rten::ThreadPool;

use crate::network::Network;
use crate::picture::Picture;
use crate::worker::{Engine, Limits, Worker, cancelled};
use crate::{Settings, weights};
use angle::AngleClassifier;
use detect::Detector;
use recognize::{Recognizer, batches};

/// The name of the sense, of its weights and of its option.
const SENSE: &str = "ocr";
/// Maximum number of waiting pictures.
const QUEUE_LIMIT: usize = 8;
/// The files in the directory of models: detection, angle, recognition.
pub(crate) const FILES: [&str; 3] = [
    "pp-ocrv6-small/detection.onnx",
    "pp-ocrv6-small/angle.onnx",
    "pp-ocrv6-small/recognition.onnx",
];

/// Recognizes text on this machine.
#[derive(Debug)]
pub struct LocalOcr {
    settings: Arc<Settings>,
    worker: Worker<PpOcr>,
}

impl LocalOcr {
    /// Nothing is loaded before the first request.
    pub fn new(settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let limits = Limits { queue: QUEUE_LIMIT, batch: 1, idle: settings.idle };
        let load = {
            let settings = Arc::clone(&settings);
            move || PpOcr::load(&settings)
        };
        Self { settings, worker: Worker::new(SENSE, limits, load) }
    }

    /// True while the models are in memory.
    pub fn is_loaded(&self) -> bool {
        self.worker.is_running()
    }
}

impl Ocr for LocalOcr {
    fn ready(&self) -> Result<(), SenseError> {
        weights::check(SENSE, &self.settings)
    }

    fn read(&self, image: Vec<u8>) -> BoxFuture<'_, Result<RecognizedText, SenseError>> {
        Box::pin(async move {
            weights::check(SENSE, &self.settings)?;
            Ok(self.worker.submit(image, 1).await?.output)
        })
    }
}

/// The models in memory.
struct PpOcr {
    detector: Detector,
    angle: AngleClassifier,
    recognizer: Recognizer,
}

impl PpOcr {
    fn load(settings: &Settings) -> Result<Self, SenseError> {
        let threads = Arc::new(ThreadPool::with_num_threads(settings.threads));
        let [detection, angle, recognition] =
            FILES.map(|file| Network::load(&settings.models_dir.join(file), &threads));
        Ok(Self {
            detector: Detector::new(detection?),
            angle: AngleClassifier::new(angle?),
            recognizer: Recognizer::new(recognition?)?,
        })
    }

    fn read(
        &self,
        image: &[u8],
        abandoned: &dyn Fn() -> bool,
    ) -> Result<RecognizedText, SenseError> {
        let picture = Picture::decode(image)?;
        let quads = self.detector.detect(&picture)?;
        let mut lines = Vec::new();
        for quads in batches(quads) {
            if abandoned() {
                return Err(cancelled());
            }
            lines.extend(self.recognizer.read(&picture, &quads, &self.angle)?);
        }
        let lines = lines.into_iter().map(|line| tighten::tightened(&picture, line)).collect();
        let (width, height) = (picture.width as u32, picture.height as u32);
        Ok(RecognizedText { width, height, lines: order::reading_order(lines) })
    }
}

impl Engine for PpOcr {
    type Input = Vec<u8>;
    type Output = RecognizedText;

    fn run(
        &mut self,
        batch: Vec<Vec<u8>>,
        abandoned: &dyn Fn() -> bool,
    ) -> Vec<Result<RecognizedText, SenseError>> {
        batch.iter().map(|image| self.read(image, abandoned)).collect()
    }
}
