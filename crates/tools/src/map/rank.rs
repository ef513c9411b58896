//! Which symbols matter: those that other files use.
//!
//! A file that uses a name says something for its definitions. To use it often says more, but not
//! in proportion: the root of the number counts. Where a name has several definitions they share
//! what is said, because nobody knows which is meant; so `new` and `get`, which everybody defines,
//! weigh little. What the file of a definition itself says counts a tenth: enough to put what has
//! no other users in order.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::outline::{Name, Outline};

/// What a file says of its own definitions counts this much.
const OWN: f64 = 0.1;

/// A symbol and its weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranked {
    /// Which file it is in.
    pub(super) file: usize,
    /// Which of the file's symbols it is.
    pub(super) symbol: usize,
    pub(super) weight: f64,
}

/// All symbols, the weightiest first; those that weigh the same as they come in their files.
pub(super) fn rank(outlines: &[Arc<Outline>]) -> Vec<Ranked> {
    let said = said(outlines);
    let mut ranked = Vec::new();
    for (file, outline) in outlines.iter().enumerate() {
        for (symbol, defined) in outline.symbols.iter().enumerate() {
            let weight =
                said.get(&defined.name).map_or(0.0, |said| said.weight(outline, defined.name));
            ranked.push(Ranked { file, symbol, weight });
        }
    }
    ranked.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    ranked
}

/// What is said of a name.
#[derive(Default)]
struct Said {
    definitions: u32,
    uses: f64,
}

impl Said {
    /// What a definition in this file weighs.
    fn weight(&self, outline: &Outline, name: Name) -> f64 {
        let own = outline.uses.binary_search_by_key(&name, |(used, _)| *used);
        let own = own.map_or(0.0, |at| share(outline.uses[at].1));
        // Roundings must not tell apart what is the same.
        let others = (self.uses - own).max(0.0);
        (others + own * OWN) / f64::from(self.definitions.max(1))
    }
}

fn said(outlines: &[Arc<Outline>]) -> HashMap<Name, Said, Plain> {
    let mut said: HashMap<Name, Said, Plain> = HashMap::default();
    for symbol in outlines.iter().flat_map(|outline| &outline.symbols) {
        said.entry(symbol.name).or_default().definitions += 1;
    }
    for (name, times) in outlines.iter().flat_map(|outline| &outline.uses) {
        if let Some(said) = said.get_mut(name) {
            said.uses += share(*times);
        }
    }
    said
}

fn share(times: u32) -> f64 {
    f64::from(times).sqrt()
}

/// The files in which these are, the weightiest first, each with the numbers of its symbols.
pub(super) fn by_file(shown: &[Ranked]) -> Vec<(usize, Vec<usize>)> {
    let mut files: HashMap<usize, (f64, Vec<usize>)> = HashMap::new();
    for ranked in shown {
        let (weight, symbols) = files.entry(ranked.file).or_default();
        *weight += ranked.weight;
        symbols.push(ranked.symbol);
    }
    let mut files: Vec<_> = files.into_iter().collect();
    files.sort_by(|(a, (x, _)), (b, (y, _))| y.total_cmp(x).then(a.cmp(b)));
    let sorted = |mut symbols: Vec<usize>| {
        symbols.sort_unstable();
        symbols
    };
    files.into_iter().map(|(file, (_, symbols))| (file, sorted(symbols))).collect()
}

/// A name is a hash already.
type Plain = BuildHasherDefault<PlainHasher>;

#[derive(Default)]
struct PlainHasher(u64);

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }
}
