//! Which names matter: those that other files use.
//!
//! A file that uses a name says something for its definitions. To use it often says more, but not
//! in proportion: the root of the number counts. Where a name has several definitions they share
//! what is said, because nobody knows which is meant; so `new` and `get`, which everybody defines,
//! weigh little. What the file of a definition itself says counts a tenth: enough to put what has
//! no other users in order.

use std::collections::HashMap;
use std::sync::Arc;

use super::name::{Name, Plain};
use super::skim::Skim;

/// What a file says of its own definitions counts this much.
const OWN: f64 = 0.1;

/// What is said of all names.
#[derive(Debug)]
pub(super) struct Weights(HashMap<Name, Said, Plain>);

/// What is said of a name.
#[derive(Debug, Default)]
struct Said {
    definitions: u32,
    uses: f64,
}

impl Weights {
    pub(super) fn of(skims: &[Arc<Skim>]) -> Self {
        let mut said: HashMap<Name, Said, Plain> = HashMap::default();
        for name in skims.iter().flat_map(|skim| &skim.defined) {
            said.entry(*name).or_default().definitions += 1;
        }
        for (name, times) in skims.iter().flat_map(|skim| &skim.uses) {
            said.entry(*name).or_default().uses += share(*times);
        }
        Self(said)
    }

    /// What a definition in this file weighs.
    pub(super) fn weight(&self, skim: &Skim, name: Name) -> f64 {
        let Some(said) = self.0.get(&name) else { return 0.0 };
        let own = skim.uses.binary_search_by_key(&name, |(used, _)| *used);
        let own = own.map_or(0.0, |at| share(skim.uses[at].1));
        // Roundings must not tell apart what is the same.
        let others = (said.uses - own).max(0.0);
        (others + own * OWN) / f64::from(said.definitions.max(1))
    }

    /// The most that a definition in this file seems to weigh.
    pub(super) fn best(&self, skim: &Skim) -> f64 {
        skim.defined.iter().map(|name| self.weight(skim, *name)).fold(0.0, f64::max)
    }
}

fn share(times: u32) -> f64 {
    f64::from(times).sqrt()
}
