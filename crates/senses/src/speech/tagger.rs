//! Part-of-speech tagging: a perceptron over a word, its neighbours and the tags before it.
//!
//! The pronunciation of some words depends on their part of speech: "I record a record".

use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The weights in file format.
#[derive(Debug, Deserialize)]
pub(super) struct TaggerData {
    tags: Vec<String>,
    tagdict: HashMap<Box<str>, Box<str>>,
    vocab: HashSet<Box<str>>,
    weights: HashMap<Box<str>, Pairs>,
}

/// An object of the file, as a list.
#[derive(Debug)]
struct Pairs(Vec<(Box<str>, f32)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of numbers")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// Tags words with Penn Treebank tags: `NN`, `VBD`, …
#[derive(Debug)]
pub(super) struct Tagger {
    tags: Vec<String>,
    /// Words that usually have one tag.
    known: HashMap<Box<str>, Box<str>>,
    frequent: HashSet<Box<str>>,
    /// For each feature, its weights for tags, by their numbers.
    weights: HashMap<Box<str>, Vec<(u8, f32)>>,
}

impl Tagger {
    pub(super) fn new(data: TaggerData) -> Self {
        let mut tags = data.tags;
        // If two tags are equally likely, the later name wins, as in the reference implementation.
        tags.sort();
        let number = |tag: &str| tags.iter().position(|known| known == tag);
        let numbered = |pairs: Pairs| {
            let pairs = pairs.0.into_iter();
            pairs
                .filter_map(|(tag, weight)| Some((u8::try_from(number(&tag)?).ok()?, weight)))
                .collect()
        };
        let weights = data.weights.into_iter().map(|(feature, pairs)| (feature, numbered(pairs)));
        let weights = weights.collect();
        Self { weights, tags, known: data.tagdict, frequent: data.vocab }
    }

    /// The tag of each word.
    pub(super) fn tags<'a>(&'a self, words: &[&str]) -> Vec<&'a str> {
        let context = self.context(words);
        let (mut before, mut before_that) = ("-START-", "-START2-");
        let mut tags = Vec::with_capacity(words.len());
        for (at, word) in words.iter().enumerate() {
            let tag = match self.known.get(*word) {
                Some(tag) => &**tag,
                None => self.likeliest(&features(at, word, &context, before, before_that)),
            };
            tags.push(tag);
            (before_that, before) = (before, tag);
        }
        tags
    }

    /// The words as the features use them, with two markers at each end.
    fn context(&self, words: &[&str]) -> Vec<String> {
        let seen = words.iter().map(|word| {
            let plain = plain(word);
            if self.frequent.contains(&*plain) { plain } else { format!("<{}>", shape(word)) }
        });
        let (start, end) = (["-START2-", "-START-"], ["-END-", "-END2-"]);
        start.map(String::from).into_iter().chain(seen).chain(end.map(String::from)).collect()
    }

    fn likeliest(&self, features: &[String]) -> &str {
        let mut scores = vec![0.0f32; self.tags.len()];
        let mut known = false;
        for pairs in features.iter().filter_map(|feature| self.weights.get(&**feature)) {
            known = true;
            for (tag, weight) in pairs {
                scores[usize::from(*tag)] += weight;
            }
        }
        let best = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
        match best {
            Some((tag, _)) if known => &self.tags[tag],
            Some(_) | None => "NN",
        }
    }
}

fn features(
    at: usize,
    word: &str,
    context: &[String],
    before: &str,
    before_that: &str,
) -> Vec<String> {
    let here = at + 2;
    let neighbour = |by: usize| &context[here + by - 2];
    vec![
        "b".into(),
        format!("s3={}", ending(word)),
        format!("p1={}", word.chars().next().unwrap_or_default()),
        format!("w={}", context[here]),
        format!("sh={}", shape(word)),
        if at == 0 { "i0".into() } else { "i+".into() },
        format!("t-1={before}"),
        format!("t-2={before_that}"),
        format!("t-12={before},{before_that}"),
        format!("w-1={}", neighbour(1)),
        format!("s3-1={}", ending(neighbour(1))),
        format!("w-2={}", neighbour(0)),
        format!("w+1={}", neighbour(3)),
        format!("s3+1={}", ending(neighbour(3))),
        format!("w+2={}", neighbour(4)),
    ]
}

/// The last three letters.
fn ending(word: &str) -> &str {
    let start = word.char_indices().rev().nth(2).map_or(0, |(at, _)| at);
    &word[start..]
}

fn plain(word: &str) -> String {
    let is_number = word.chars().all(|letter| letter.is_ascii_digit());
    match word {
        word if word.contains('-') && !word.starts_with('-') => "!HYPHEN".into(),
        word if is_number && word.len() == 4 => "!YEAR".into(),
        word if word.starts_with(|letter: char| letter.is_ascii_digit()) => "!DIGITS".into(),
        word => word.to_lowercase(),
    }
}

fn shape(word: &str) -> String {
    let is_upper = |letter: char| letter.is_uppercase();
    if word.chars().all(char::is_alphabetic) {
        let mut letters = word.chars();
        let first = letters.next().is_some_and(is_upper);
        let (uppers, rest) = (letters.clone().filter(|l| is_upper(*l)).count(), letters.count());
        let shape = match (first, uppers, rest) {
            (false, 0, _) => "x",
            (true, _, 0) => "X1",
            (true, uppers, rest) if uppers == rest => "XX",
            (true, 0, _) => "Xx",
            (_, _, _) => "xX",
        };
        return shape.into();
    }
    if word.chars().all(|letter| letter.is_ascii_digit()) {
        return "d".into();
    }
    let shape = |letter: char| match letter {
        letter if letter.is_ascii_digit() => 'd',
        letter if letter.is_alphabetic() => 'x',
        letter => letter,
    };
    word.chars().take(4).map(shape).collect()
}
