//! Checks the files of local models.

use std::path::Path;

use quintet_kernel::port::Finding;
use quintet_local::PROVIDER;
use quintet_local::weights as chat;
use quintet_senses::weights as senses;
use quintet_weights::{Model, State, check};

use crate::options::{EmbeddingSource, Options, TranscriptionSource};

const ABOUT: &str = "model files";

/// A finding for each chat model that is downloaded or needed, or one for all if there is none.
pub(super) fn check_chat_models(options: &Options) -> Vec<Finding> {
    let Some(settings) = &options.local else { return Vec::new() };
    let wanted = chat::find(&options.default_model.model)
        .filter(|_| options.default_model.provider == PROVIDER);
    let is_wanted = |row: &chat::Weights| wanted.is_some_and(|wanted| wanted.name == row.name);
    let of = |row: &'static chat::Weights| {
        finding(ABOUT, row.model(), &settings.models_dir, is_wanted(row))
    };
    let found: Vec<Finding> = chat::all().iter().filter_map(of).collect();
    if found.is_empty() { vec![Finding::ok(ABOUT, "none downloaded, none needed")] } else { found }
}

/// A line for each sense.
pub(super) fn senses(options: &Options) -> Vec<Finding> {
    let (dir, used) = (&options.senses.settings.models_dir, options.senses.weights());
    let local = senses::all().iter().filter(|row| used.contains(&row.name.as_str()));
    let mut found: Vec<Finding> = local.map(|row| sense(&row.name, row.model(), dir)).collect();
    match &options.senses.embeddings {
        EmbeddingSource::Local => {}
        EmbeddingSource::Off => found.push(Finding::ok("embeddings", "off (senses.embeddings)")),
        EmbeddingSource::Provider { config, model, dimensions, .. } => found.push(Finding::ok(
            "embeddings",
            format!("{}/{model}, {dimensions} dimensions", config.name),
        )),
        EmbeddingSource::Service { url, .. } => {
            found.push(Finding::ok("embeddings", format!("the service at {url}")));
        }
    }
    if !options.senses.ocr {
        found.push(Finding::ok("ocr", "off (senses.ocr)"));
    }
    let (transcription, speech) = (&options.senses.transcription, &options.senses.speech);
    let transcribes_here =
        matches!(transcription, TranscriptionSource::Utterances(source) if source.is_local());
    let voice = [
        ("transcription", transcribes_here, transcription.name()),
        ("speech", speech.is_local(), speech.name()),
    ];
    for (about, _, name) in voice.into_iter().filter(|(_, is_local, _)| !is_local) {
        found.push(Finding::ok(about, format!("{name} (senses.{about})")));
    }
    found.push(match &options.senses.vision {
        Some(model) => Finding::ok("vision", model.to_string()),
        None => Finding::ok("vision", "off (senses.vision)"),
    });
    found
}

fn sense(about: &'static str, model: Model<'_>, dir: &Path) -> Finding {
    let missing = Finding::warning(
        about,
        format!("the weights of {} are not downloaded", model.title),
        format!("quintet models pull {}", model.name),
    );
    finding(about, model, dir, false).unwrap_or(missing)
}

fn finding(about: &'static str, model: Model<'_>, dir: &Path, wanted: bool) -> Option<Finding> {
    let (name, pull) = (model.name, format!("quintet models pull {}", model.name));
    let begun = |bytes: u64| format!("{name}: {bytes} of {} bytes", model.size());
    Some(match check(model, dir) {
        State::Complete => Finding::ok(about, format!("{name} is complete")),
        State::Wrong(file) => {
            let path = dir.join(file);
            Finding::error(
                about,
                format!("{} has the wrong hash", path.display()),
                format!("rm {} && {pull}", path.display()),
            )
        }
        State::Begun(bytes) if wanted => Finding::error(about, begun(bytes), pull),
        State::Begun(bytes) => Finding::warning(about, begun(bytes), pull),
        State::Absent if wanted => Finding::error(about, format!("{name} is not downloaded"), pull),
        State::Absent => return None,
    })
}
