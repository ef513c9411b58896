//! The similarity of two texts, as computed by Python's `difflib.SequenceMatcher`.
//!
//! Clients of protocols compare scores with thresholds, so the scores equal Python's to the last
//! bit, including its heuristic for popular characters.

use std::collections::HashMap;

/// If the second text is at least this long, a match cannot start at its popular characters.
const POPULAR_MIN_LENGTH: usize = 200;

/// Twice the number of matching characters by the number of all characters: 1 for equal texts, 0 for
/// texts with no character in common. The order of the texts matters.
pub fn ratio(a: &str, b: &str) -> f64 {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let length = a.len() + b.len();
    if length == 0 {
        return 1.0;
    }
    let matching = Matcher::new(&a, &b).matching();
    #[expect(clippy::cast_precision_loss, reason = "texts are shorter than 2^52 characters")]
    let ratio = 2.0 * matching as f64 / length as f64;
    ratio
}

/// A text in the form in which texts are compared: lower case, without surrounding whitespace, by
/// Python's definitions.
pub fn normalized(text: &str) -> String {
    stripped(&text.to_lowercase()).to_owned()
}

/// A text without surrounding whitespace. Python counts four control characters that Unicode does
/// not.
pub fn stripped(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

struct Matcher<'a> {
    a: &'a [char],
    b: &'a [char],
    /// The positions of each character in `b`, except popular ones.
    places: HashMap<char, Vec<usize>>,
}

/// Parts of both texts that are not compared yet: `a[from..to]` and `b[from..to]`.
struct TextRange {
    a: (usize, usize),
    b: (usize, usize),
}

/// A part that both texts share.
#[derive(Clone, Copy)]
struct Match {
    a: usize,
    b: usize,
    length: usize,
}

impl<'a> Matcher<'a> {
    fn new(a: &'a [char], b: &'a [char]) -> Self {
        let mut places: HashMap<char, Vec<usize>> = HashMap::new();
        for (at, c) in b.iter().enumerate() {
            places.entry(*c).or_default().push(at);
        }
        if b.len() >= POPULAR_MIN_LENGTH {
            let limit = b.len() / 100 + 1;
            places.retain(|_, at| at.len() <= limit);
        }
        Self { a, b, places }
    }

    /// Number of matching characters: those of the longest match and, recursively, before and after
    /// it.
    fn matching(&self) -> usize {
        let mut open = vec![TextRange { a: (0, self.a.len()), b: (0, self.b.len()) }];
        let mut matching = 0;
        while let Some(span) = open.pop() {
            let longest = self.longest(&span);
            if longest.length == 0 {
                continue;
            }
            matching += longest.length;
            let (a_end, b_end) = (longest.a + longest.length, longest.b + longest.length);
            if span.a.0 < longest.a && span.b.0 < longest.b {
                open.push(TextRange { a: (span.a.0, longest.a), b: (span.b.0, longest.b) });
            }
            if a_end < span.a.1 && b_end < span.b.1 {
                open.push(TextRange { a: (a_end, span.a.1), b: (b_end, span.b.1) });
            }
        }
        matching
    }

    /// The longest match within a span; of several the first in `a`, and of those the first in `b`.
    fn longest(&self, span: &TextRange) -> Match {
        let mut best = Match { a: span.a.0, b: span.b.0, length: 0 };
        // At `n`, the length of the match that ends before `b[n]`: for the previous character of
        // `a` and for this one.
        let (mut before, mut now) = (vec![0; self.b.len() + 1], vec![0; self.b.len() + 1]);
        let mut last: &[usize] = &[];
        for at in span.a.0..span.a.1 {
            let places = self.places_within(self.a[at], span.b);
            for place in places.iter().copied() {
                let length = before[place] + 1;
                now[place + 1] = length;
                if length > best.length {
                    best = Match { a: at + 1 - length, b: place + 1 - length, length };
                }
            }
            for place in last {
                before[place + 1] = 0;
            }
            std::mem::swap(&mut before, &mut now);
            last = places;
        }
        self.extended(best, span)
    }

    /// The positions of a character in a part of `b`, in order.
    fn places_within(&self, c: char, (from, to): (usize, usize)) -> &[usize] {
        let places = self.places.get(&c).map(Vec::as_slice).unwrap_or_default();
        let first = places.partition_point(|place| *place < from);
        let end = places.partition_point(|place| *place < to);
        &places[first..end]
    }

    /// Extends a match by equal text around it: popular characters do not start a match, but can be part of
    /// one.
    fn extended(&self, mut found: Match, span: &TextRange) -> Match {
        while found.a > span.a.0 && found.b > span.b.0 && self.a[found.a - 1] == self.b[found.b - 1]
        {
            found = Match { a: found.a - 1, b: found.b - 1, length: found.length + 1 };
        }
        while found.a + found.length < span.a.1
            && found.b + found.length < span.b.1
            && self.a[found.a + found.length] == self.b[found.b + found.length]
        {
            found.length += 1;
        }
        found
    }
}

#[cfg(test)]
mod tests;
