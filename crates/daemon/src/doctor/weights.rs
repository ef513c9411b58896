//! The files of the models that run here.

use quintet_local::pull::{State, check};
use quintet_local::weights::{self, Weights};
use quintet_local::{PROVIDER, Settings};

use super::Finding;
use crate::options::Options;

const ABOUT: &str = "model files";

/// A line a model that is here or wanted; one for all if there is none.
pub(super) fn look(options: &Options) -> Vec<Finding> {
    let Some(settings) = &options.local else { return Vec::new() };
    let wanted = weights::find(&options.default_model.model)
        .filter(|_| options.default_model.provider == PROVIDER);
    let is_wanted = |row: &Weights| wanted.is_some_and(|wanted| wanted.name == row.name);
    let of = |row: &'static Weights| finding(row, settings, is_wanted(row));
    let found: Vec<Finding> = weights::all().iter().filter_map(of).collect();
    match found.is_empty() {
        true => vec![Finding::well(ABOUT, "none fetched, none needed")],
        false => found,
    }
}

fn finding(row: &Weights, settings: &Settings, wanted: bool) -> Option<Finding> {
    let (name, pull) = (&row.name, format!("quintet models pull {}", row.name));
    let path = settings.models_dir.join(row.file());
    Some(match check(row, &settings.models_dir) {
        State::Whole => Finding::well(ABOUT, format!("{name} is whole")),
        State::Wrong => Finding::ill(
            ABOUT,
            format!("{} is not what was published", path.display()),
            format!("rm {} && {pull}", path.display()),
        ),
        State::Begun(bytes) if wanted => {
            Finding::ill(ABOUT, format!("{name}: {} of {} bytes", bytes, row.size), pull)
        }
        State::Begun(bytes) => {
            Finding::poor(ABOUT, format!("{name}: {} of {} bytes", bytes, row.size), pull)
        }
        State::Absent if wanted => Finding::ill(ABOUT, format!("{name} is not here"), pull),
        State::Absent => return None,
    })
}
