//! Weighs names by how much other files use them.
//!
//! A file that uses a name adds the square root of its number of uses. If a name has several definitions, they
//! share the weight, because it is unknown which one is meant; so common names such as `new` and `get` weigh
//! little. Uses in the file of the definition count a tenth: enough to order names without other users.

use std::collections::HashMap;
use std::sync::Arc;

use super::name::{Name, Plain};
use super::skim::Skim;

/// The weight of uses in the file of the definition.
const OWN: f64 = 0.1;

/// The weights of all names.
#[derive(Debug)]
pub(super) struct Weights(HashMap<Name, Said, Plain>);

/// The uses of a name.
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
        // Rounding must not make equal weights differ.
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
