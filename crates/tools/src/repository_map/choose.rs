//! Parses the files that are worth it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Ranked;
use super::gather::Field;
use super::name::{Name, Plain};
use super::outline::{Outline, Symbol};
use super::rank::Weights;
use super::skim::Skim;

/// How many files are parsed before it is looked whether that is enough.
const BATCH_FILES: usize = 64;

/// The weight of uses of a method: they may refer to a method of another type, which may not even be defined here,
/// as with `iter` and `map`.
const METHOD: f64 = 0.25;

/// Files and what a skim of each found.
#[derive(Debug)]
pub(super) struct Skimmed<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) skims: &'a [Arc<Skim>],
}

/// What was chosen.
#[derive(Debug)]
pub(super) struct Choice {
    /// The symbols by descending weight; those with the same weight in the order of files and lines.
    pub(super) ranked: Vec<Ranked>,
    /// How many more there are, about, in files that were not parsed.
    pub(super) unseen: usize,
}

/// Parses files, in descending order of the greatest weight that a skim found in them, until enough symbols
/// have at least the weight that any symbol in the remaining files can have.
pub(super) fn choose(
    listing: Field<'_>,
    skimmed: &Skimmed<'_>,
    within: &Path,
    enough: usize,
) -> Choice {
    let weights = Weights::of(skimmed.skims);
    let order = order(skimmed, within, &weights);
    let (mut ranked, mut parsed) = (Vec::new(), 0);
    for batch in order.chunks(BATCH_FILES) {
        // An order goes down, so what comes next is the best that could come.
        let best = batch[0].1;
        if listing.flag.is_cancelled() || count(&ranked, best) >= enough {
            break;
        }
        parsed += batch.len();
        let batch: Vec<_> = batch.iter().map(|(file, _)| *file).collect();
        for (file, outline) in batch.iter().zip(listing.outlines(skimmed.files, &batch)) {
            let skim = &skimmed.skims[*file];
            ranked.extend(weighed(&outline, skim, &weights).map(|(place, weight)| Ranked {
                file: *file,
                outline: outline.clone(),
                place,
                weight,
            }));
        }
    }
    ranked.sort_by(|a: &Ranked, b| {
        b.weight.total_cmp(&a.weight).then((a.file, a.place).cmp(&(b.file, b.place)))
    });
    let unseen = order[parsed..].iter().map(|(file, _)| skimmed.skims[*file].defined.len()).sum();
    Choice { ranked, unseen }
}

/// The places of a file's symbols and what each weighs. Those of the same name share what it weighs.
fn weighed(
    outline: &Outline,
    skim: &Skim,
    weights: &Weights,
) -> impl Iterator<Item = (usize, f64)> {
    let mut same: HashMap<Name, f64, Plain> = HashMap::default();
    for symbol in &outline.symbols {
        *same.entry(symbol.name).or_default() += 1.0;
    }
    let weight = move |symbol: &Symbol| {
        let part = if symbol.kind == "method" { METHOD } else { 1.0 };
        let sharers = same.get(&symbol.name).copied().unwrap_or(1.0);
        weights.weight(skim, symbol.name) * part / sharers
    };
    outline.symbols.iter().map(weight).enumerate()
}

/// The files beneath a path with the greatest weight that a skim found in each, in descending order.
fn order(skimmed: &Skimmed<'_>, within: &Path, weights: &Weights) -> Vec<(usize, f64)> {
    let files = skimmed.files.iter().enumerate().filter(|(_, path)| path.starts_with(within));
    let mut order: Vec<_> =
        files.map(|(file, _)| (file, weights.best(&skimmed.skims[file]))).collect();
    order.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    order
}

fn count(ranked: &[Ranked], weight: f64) -> usize {
    ranked.iter().filter(|ranked| ranked.weight >= weight).count()
}
