//! The sections of the system prompt that come from memory: the user, the tools and the notes.

use std::time::Duration;

use quintet_kernel::Time;
use quintet_kernel::context::Section;

use crate::confined_fs::Root;
use crate::paths::{LONG_TERM, TOP_LEVEL_FILE, daily_file};
use crate::truncate::{Keep, truncate};

/// Average bytes per token, for estimates.
const BYTES_PER_TOKEN: usize = 4;

/// The files, in the order in which they are shown. `AGENTS.md` is not among them: it is part of
/// the description of every workspace.
fn files(now: Time) -> [(String, Keep); 6] {
    let yesterday = now.before(Duration::from_secs(24 * 60 * 60));
    [
        ("USER.md".into(), Keep::Beginning),
        ("TOOLS.md".into(), Keep::Beginning),
        (TOP_LEVEL_FILE.into(), Keep::Beginning),
        (LONG_TERM.into(), Keep::Ends),
        (daily_file(&yesterday.day()), Keep::End),
        (daily_file(&now.day()), Keep::End),
    ]
}

/// The sections, one per file, within a token budget.
pub(crate) fn sections(root: &Root, tokens: u64, now: Time) -> Vec<Section> {
    let read = |(path, keep): (String, Keep)| {
        let content = root.read(&path).ok().flatten()?;
        let text = String::from_utf8_lossy(&content).trim().to_owned();
        (!text.is_empty()).then(|| (path, keep, text + "\n"))
    };
    let found: Vec<_> = files(now).into_iter().filter_map(read).collect();
    let sizes: Vec<usize> = found.iter().map(|(_, _, text)| text.len()).collect();
    let budget = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
    let shares = shares(&sizes, budget);
    let section = |((title, keep, text), share): ((String, Keep, String), usize)| Section {
        title,
        text: truncate(&text, share, keep),
    };
    let sections = found.into_iter().zip(shares).map(section);
    sections.filter(|section| !section.text.is_empty()).collect()
}

/// Divides the budget: small files get what they need, the others share the rest equally.
fn shares(sizes: &[usize], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| sizes[*at]);
    let (mut shares, mut left) = (vec![0; sizes.len()], budget);
    for (done, at) in order.iter().enumerate() {
        shares[*at] = sizes[*at].min(left / (sizes.len() - done));
        left -= shares[*at];
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_get_what_they_need_and_large_ones_share_the_rest() {
        assert_eq!(shares(&[10, 1000, 500], 410), [10, 200, 200]);
        assert_eq!(shares(&[10, 20], 100), [10, 20]);
        assert_eq!(shares(&[10, 20], 0), [0, 0]);
        assert!(shares(&[], 5).is_empty());
    }
}
