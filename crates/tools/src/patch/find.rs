//! Where lines are in a file: exactly, or as nearly as is still certain.

use super::text::FileLine;

/// How alike lines must be; the first that finds a place is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Likeness {
    Exact,
    /// But for white space at the end.
    TrailingSpace,
    /// But for how much white space there is, and whether there is some at the ends.
    AnySpace,
}

impl Likeness {
    pub(super) const ALL: [Self; 3] = [Self::Exact, Self::TrailingSpace, Self::AnySpace];

    fn key(self, line: &[u8]) -> Vec<u8> {
        match self {
            Self::Exact => line.to_vec(),
            Self::TrailingSpace => line.trim_ascii_end().to_vec(),
            Self::AnySpace => {
                let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                words.collect::<Vec<_>>().join(&b' ')
            }
        }
    }
}

/// Where a hunk was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FoundHunk {
    pub(super) at: usize,
    pub(super) likeness: Likeness,
}

/// A file in which to look, with the keys of its lines for every likeness, made when first needed.
pub(super) struct Haystack<'a> {
    lines: &'a [FileLine],
    keys: [Option<Vec<Vec<u8>>>; 3],
}

impl<'a> Haystack<'a> {
    pub(super) fn new(lines: &'a [FileLine]) -> Self {
        Self { lines, keys: [const { None }; 3] }
    }

    /// Looks for lines, not before `from`; the place nearest to `hint` counts.
    ///
    /// Lines that have a `\r` are those of a patch that cares for it; then the file's count too.
    pub(super) fn find(&mut self, needle: &[&[u8]], from: usize, hint: usize) -> Option<FoundHunk> {
        let careful = needle.iter().any(|line| line.ends_with(b"\r"));
        if careful && let Some(at) = self.find_raw(needle, from, hint) {
            return Some(FoundHunk { at, likeness: Likeness::Exact });
        }
        let levels = Likeness::ALL.into_iter().enumerate().skip(usize::from(careful));
        for (level, likeness) in levels {
            let lines = self.lines;
            let keys = self.keys[level]
                .get_or_insert_with(|| lines.iter().map(|line| likeness.key(&line.text)).collect());
            let wanted: Vec<_> = needle.iter().map(|line| likeness.key(line)).collect();
            // Blank lines alone would match anywhere.
            if likeness != Likeness::Exact && wanted.iter().all(Vec::is_empty) {
                continue;
            }
            let fits = |at: usize| keys[at..at + wanted.len()] == wanted[..];
            if let Some(at) = nearest(keys.len(), wanted.len(), from, hint, fits) {
                return Some(FoundHunk { at, likeness });
            }
        }
        None
    }

    fn find_raw(&self, needle: &[&[u8]], from: usize, hint: usize) -> Option<usize> {
        let fits = |at: usize| {
            let lines = &self.lines[at..at + needle.len()];
            lines.iter().zip(needle).all(|(line, wanted)| line.raw() == *wanted)
        };
        nearest(self.lines.len(), needle.len(), from, hint, fits)
    }
}

/// The place nearest to `hint` where something of `length` fits into `total`, not before `from`.
fn nearest(
    total: usize,
    length: usize,
    from: usize,
    hint: usize,
    fits: impl Fn(usize) -> bool,
) -> Option<usize> {
    let last = total.checked_sub(length).filter(|last| *last >= from)?;
    let hint = hint.clamp(from, last);
    (0..=(last - from)).find_map(|distance| {
        let after = hint.checked_add(distance).filter(|at| *at <= last);
        let before = hint.checked_sub(distance).filter(|at| *at >= from);
        [after, before].into_iter().flatten().find(|at| fits(*at))
    })
}
