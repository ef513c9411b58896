//! Combines several rankings by reciprocal rank fusion.

use std::collections::HashMap;

/// The usual constant of the method: the higher it is, the less the first ranks differ.
const RANK_OFFSET: f64 = 60.0;

/// Candidates by number, each with its score by one measure, in any order.
pub(crate) type Ranking = Vec<(i64, f64)>;

/// All candidates of the rankings with a score, which is 1 for one that is first in all of them.
/// Candidates with equal scores share a rank.
pub(crate) fn fuse(rankings: &[Ranking]) -> Ranking {
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for ranking in rankings {
        let mut sorted = ranking.clone();
        sorted.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        let (mut rank, mut last) = (0, f64::NAN);
        for (place, (candidate, fit)) in sorted.into_iter().enumerate() {
            if fit.total_cmp(&last).is_ne() {
                (rank, last) = (place, fit);
            }
            let share = (RANK_OFFSET + 1.0) / (RANK_OFFSET + 1.0 + rank as f64);
            *scores.entry(candidate).or_default() += share / rankings.len() as f64;
        }
    }
    scores.into_iter().map(|(candidate, score)| (candidate, rounded(score))).collect()
}

/// Rounds a score, so that noise in the last digits does not decide between equal candidates.
pub(crate) fn rounded(score: f64) -> f64 {
    (score * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rankings: &[Ranking], expected: &[(i64, f64)]) {
        let mut fused = fuse(rankings);
        fused.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        assert_eq!(fused, expected);
    }

    #[test]
    fn candidates_high_in_both_rankings_come_first() {
        let words = vec![(1, 0.9), (2, 0.8), (3, 0.1)];
        let embedding = vec![(4, 0.7), (2, 0.6), (5, 0.5)];
        check(&[words, embedding], &[(2, 0.9839), (1, 0.5), (4, 0.5), (3, 0.4841), (5, 0.4841)]);
    }

    #[test]
    fn equal_candidates_share_a_rank_and_one_ranking_suffices() {
        check(&[vec![(1, 0.2), (2, 0.5), (3, 0.5)]], &[(2, 1.0), (3, 1.0), (1, 0.9683)]);
        check(&[vec![(7, 0.4)], vec![]], &[(7, 0.5)]);
        check(&[], &[]);
    }
}
