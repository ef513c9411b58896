//! Joins what several ways of looking found into one list.
//!
//! Today there is one way, by words. Another, by meaning, is another list with a weight.

use std::collections::HashMap;

/// What one way of looking found: passages by their number, each with how well it fits, from 0 to 1.
#[derive(Debug)]
pub(crate) struct Ranked {
    /// How much this way counts.
    pub(crate) weight: f64,
    pub(crate) hits: Vec<(i64, f64)>,
}

/// Every passage that was found, with how well it fits by all that looked.
pub(crate) fn merge(lists: &[Ranked]) -> Vec<(i64, f64)> {
    let weights: f64 = lists.iter().map(|list| list.weight).sum();
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for list in lists {
        for (passage, score) in &list.hits {
            *scores.entry(*passage).or_default() += score.clamp(0.0, 1.0) * list.weight / weights;
        }
    }
    scores.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_count_by_their_weight() {
        let words = Ranked { weight: 3.0, hits: vec![(1, 1.0), (2, 0.5)] };
        let meaning = Ranked { weight: 1.0, hits: vec![(2, 1.0), (3, 2.0)] };
        let mut merged = merge(&[words, meaning]);
        merged.sort_by_key(|(passage, _)| *passage);
        assert_eq!(merged, [(1, 0.75), (2, 0.625), (3, 0.25)]);
        assert_eq!(merge(&[Ranked { weight: 1.0, hits: vec![(7, 0.4)] }]), [(7, 0.4)]);
        assert!(merge(&[]).is_empty());
    }
}
