//! Builds vision by the configured model, and `quintet describe`, which uses it without a daemon.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use quintet_kernel::port::{Models, Ocr, Vision, VisionResult};
use quintet_senses::{ModelVision, OcrVision};
use serde_json::json;

use crate::assemble::models;
use crate::cli::Flags;
use crate::options::{self, Options};
use crate::senses;

/// Vision by the configured model or, without one, by the text in pictures.
pub(crate) fn build(
    options: &Options,
    models: &Arc<dyn Models>,
    ocr: &Arc<dyn Ocr>,
) -> Arc<dyn Vision> {
    match &options.senses.vision {
        Some(model) => Arc::new(ModelVision::new(Arc::clone(models), model.clone())),
        None => Arc::new(OcrVision::new(Arc::clone(ocr))),
    }
}

/// `quintet describe`: describes a picture.
pub(crate) fn describe(flags: &Flags, file: &Path, as_json: bool) -> Result<()> {
    let options = options::read(flags)?;
    let (providers, _local) = models(&options);
    let vision =
        build(&options, &(Arc::new(providers) as Arc<dyn Models>), &senses::build(&options).ocr);
    vision.ready()?;
    let image = senses::read(file).with_context(|| file.display().to_string())?;
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let seen = threads.block_on(vision.describe(image));
    let VisionResult { value, model } = seen.with_context(|| file.display().to_string())?;
    let mut stdout = std::io::stdout().lock();
    if as_json {
        writeln!(stdout, "{}", json!({ "description": value, "model": model }))?;
    } else {
        writeln!(stdout, "{value}")?;
    }
    Ok(())
}
