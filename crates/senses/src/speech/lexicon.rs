//! Pronunciation of English words: two dictionaries, and rules for endings and for small words.
//!
//! The rules are those of misaki (Apache-2.0), whose phonemes the voice was trained on: a capital
//! `A` is the vowel of "day", `ˈ` and `ˌ` are the stresses, `ɾ` is the American t of "water".

use std::collections::HashMap;

use serde::Deserialize;

pub(super) const PRIMARY: char = 'ˈ';
const SECONDARY: char = 'ˌ';
const VOWELS: &str = "AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ";
const CONSONANTS: &str = "bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθ";
const PAUSES: &str = ";:,.!?—…";
/// Phonemes before which an American t between vowels is tapped.
const TAPPED_AFTER: &str = "AIOWYiuæɑəɛɪɹʊʌ";

/// The entries of a dictionary file.
pub(super) type Entries = HashMap<Box<str>, Entry>;

/// The pronunciation of a word.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Entry {
    Always(Box<str>),
    /// By the word's tag; `DEFAULT` for others. `None` means that the letters are spelled.
    ByTag(HashMap<Box<str>, Option<Box<str>>>),
}

/// A word in its sentence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) tag: &'a str,
}

/// The phonemes after a word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Following {
    /// True if they begin with a vowel; `None` before a pause.
    pub(super) vowel: Option<bool>,
    /// True if the next word is "to".
    pub(super) to: bool,
}

impl Following {
    /// What a word is followed by if these phonemes come next.
    pub(super) fn before(self, phonemes: &str, text: &str) -> Self {
        let is_known = |c: &char| [VOWELS, CONSONANTS, PAUSES].iter().any(|set| set.contains(*c));
        let vowel = match phonemes.chars().find(is_known) {
            Some(first) if PAUSES.contains(first) => None,
            Some(first) => Some(VOWELS.contains(first)),
            None => self.vowel,
        };
        Self { vowel, to: text.eq_ignore_ascii_case("to") }
    }
}

/// The stress of a word, from -2 (unstressed) to 2.
type Stress = Option<f32>;

/// Both dictionaries.
#[derive(Debug)]
pub(super) struct Lexicon {
    /// Checked by people.
    gold: Entries,
    /// Generated automatically.
    silver: Entries,
}

impl Lexicon {
    pub(super) fn new(gold: Entries, silver: Entries) -> Self {
        Self { gold, silver }
    }

    /// The phonemes of a word; `None` if it is not known.
    pub(super) fn phonemes(&self, word: Word<'_>, following: Following) -> Option<String> {
        let text = word.text.replace(['\u{2018}', '\u{2019}'], "'");
        let stress = match (text == text.to_lowercase(), text == text.to_uppercase()) {
            (true, _) => None,
            (false, true) => Some(2.0),
            (false, false) => Some(0.5),
        };
        let word = Word { text: &text, ..word };
        self.small_word(word, stress, following).or_else(|| self.word(word, stress, following))
    }

    /// Words whose pronunciation depends on what follows, and abbreviations with full stops.
    fn small_word(&self, word: Word<'_>, stress: Stress, following: Following) -> Option<String> {
        let Word { text, tag } = word;
        let sound = match text {
            _ if is_dotted(text) => return self.spelled(text),
            "a" | "A" if tag == "DT" => "ɐ",
            "a" | "A" => "ˈA",
            "am" | "Am" | "AM" if tag.starts_with("NN") => return self.spelled(text),
            "am" if following.vowel.is_some() && stress.is_none() => "ɐm",
            "am" | "Am" | "AM" => return self.entry("am", tag, following),
            "AN" if tag.starts_with("NN") => return self.spelled(text),
            "an" | "An" | "AN" => "ɐn",
            "I" if tag == "PRP" => "ˌI",
            "by" | "By" | "BY" if parent(tag) == "ADV" => "bˈI",
            "to" | "To" => match following.vowel {
                None => return self.entry("to", tag, following),
                Some(false) => "tə",
                Some(true) => "tʊ",
            },
            "in" | "In" if following.vowel.is_none() || tag != "IN" => "ˈɪn",
            "in" | "In" => "ɪn",
            "the" | "The" if following.vowel == Some(true) => "ði",
            "the" | "The" => "ðə",
            "used" | "Used" if matches!(tag, "VBD" | "JJ") && following.to => {
                return self.entry("used", "VBD", following);
            }
            "used" | "Used" => return self.entry("used", "DEFAULT", following),
            _ => return None,
        };
        Some(sound.into())
    }

    fn word(&self, word: Word<'_>, stress: Stress, following: Following) -> Option<String> {
        let lower = word.text.to_lowercase();
        let word = if self.is_better_lower(word, &lower, stress, following) {
            Word { text: &lower, ..word }
        } else {
            word
        };
        let text = word.text;
        if self.is_known(text) {
            return self.lookup(word, stress, following);
        }
        let without = text.strip_suffix('\'');
        if let Some(stem) = without.filter(|stem| self.is_known(stem)) {
            return self.lookup(Word { text: stem, ..word }, stress, following);
        }
        self.with_ending(word, stress, following)
    }

    /// True if a capitalized word is known only in lower case.
    fn is_better_lower(
        &self,
        word: Word<'_>,
        lower: &str,
        stress: Stress,
        following: Following,
    ) -> bool {
        let Word { text, tag } = word;
        let mut letters = text.chars();
        let first = letters.next();
        let is_capitalized = letters.all(|letter| !letter.is_uppercase());
        text != lower
            && first.is_some()
            && text.chars().all(|letter| letter.is_alphabetic() || letter == '\'')
            && (tag != "NNP" || text.len() > 7)
            && find(&self.gold, text).is_none()
            && find(&self.silver, text).is_none()
            && (is_capitalized || text == text.to_uppercase())
            && (find(&self.gold, lower).is_some()
                || find(&self.silver, lower).is_some()
                || self.with_ending(Word { text: lower, tag }, stress, following).is_some())
    }

    pub(super) fn is_known(&self, text: &str) -> bool {
        if find(&self.gold, text).is_some() || find(&self.silver, text).is_some() {
            return true;
        }
        if text.is_empty() || !text.bytes().all(|letter| letter.is_ascii_alphabetic()) {
            return false;
        }
        let is_upper = text == text.to_uppercase();
        text.len() == 1
            || (is_upper && find(&self.gold, &text.to_lowercase()).is_some())
            || text[1..] == text[1..].to_uppercase()
    }

    fn lookup(&self, word: Word<'_>, stress: Stress, following: Following) -> Option<String> {
        let Word { text, tag } = word;
        let lower = text.to_lowercase();
        let is_large = text == text.to_uppercase() && find(&self.gold, text).is_none();
        let text = if is_large { &lower } else { text };
        let is_name = is_large && tag == "NNP";
        let gold = find(&self.gold, text).map(|entry| sound(entry, tag, following));
        let silver = || find(&self.silver, text).map(|entry| sound(entry, tag, following));
        let found = gold.or_else(|| if is_name { None } else { silver() }).flatten();
        match found {
            Some(sound) if !is_name || sound.contains(PRIMARY) => Some(stressed(sound, stress)),
            Some(sound) => self.spelled(text).or_else(|| Some(stressed(sound, stress))),
            None => self.spelled(text),
        }
    }

    fn entry(&self, text: &str, tag: &str, following: Following) -> Option<String> {
        sound(find(&self.gold, text)?, tag, following).map(str::to_owned)
    }

    /// The letters one by one, with the stress on the last.
    fn spelled(&self, text: &str) -> Option<String> {
        let letters = text.chars().filter(|letter| letter.is_alphabetic()).map(|letter| {
            let letter = letter.to_uppercase().to_string();
            sound(find(&self.gold, &letter)?, "", Following::default())
        });
        let letters = stressed(&letters.collect::<Option<String>>()?, Some(0.0));
        let Some(last) = letters.rfind(SECONDARY) else { return Some(letters) };
        Some(format!("{}{PRIMARY}{}", &letters[..last], &letters[last + SECONDARY.len_utf8()..]))
    }

    /// A word with an ending whose stem is known.
    fn with_ending(&self, word: Word<'_>, stress: Stress, following: Following) -> Option<String> {
        let look = |stem: &str, stress| self.lookup(Word { text: stem, ..word }, stress, following);
        let text = word.text;
        if let Some(stem) = self.stem_of_s(text) {
            return look(&stem, stress).map(with_s);
        }
        if let Some(stem) = self.stem_of_ed(text) {
            return look(stem, stress).map(with_ed);
        }
        let stem = self.stem_of_ing(text)?;
        look(&stem, stress.or(Some(0.5))).map(with_ing)
    }

    fn stem_of_s(&self, text: &str) -> Option<String> {
        if text.len() < 3 {
            return None;
        }
        let stem = text.strip_suffix('s')?;
        if !stem.ends_with('s') && self.is_known(stem) {
            return Some(stem.into());
        }
        let stem = text.strip_suffix("'s").or_else(|| {
            text.strip_suffix("es").filter(|stem| text.len() > 4 && !stem.ends_with('i'))
        });
        if let Some(stem) = stem.filter(|stem| self.is_known(stem)) {
            return Some(stem.into());
        }
        let stem = format!("{}y", text.strip_suffix("ies").filter(|_| text.len() > 4)?);
        self.is_known(&stem).then_some(stem)
    }

    fn stem_of_ed<'a>(&self, text: &'a str) -> Option<&'a str> {
        let stem = text.strip_suffix('d').filter(|_| text.len() > 3)?;
        if !stem.ends_with('d') && self.is_known(stem) {
            return Some(stem);
        }
        let stem = text.strip_suffix("ed").filter(|stem| text.len() > 4 && !stem.ends_with('e'))?;
        self.is_known(stem).then_some(stem)
    }

    fn stem_of_ing(&self, text: &str) -> Option<String> {
        let stem = text.strip_suffix("ing").filter(|stem| stem.len() > 1)?;
        if stem.len() > 2 && self.is_known(stem) {
            return Some(stem.into());
        }
        let with_e = format!("{stem}e");
        if self.is_known(&with_e) {
            return Some(with_e);
        }
        let last = stem.chars().next_back()?;
        let shorter = &stem[..stem.len() - last.len_utf8()];
        let is_double = shorter.ends_with(last) || stem.ends_with("ck");
        (is_double && self.is_known(shorter)).then(|| shorter.to_owned())
    }
}

/// The entry of a word, in its own case or with the first letter in the other case.
fn find<'a>(entries: &'a Entries, text: &str) -> Option<&'a Entry> {
    if let Some(entry) = entries.get(text) {
        return Some(entry);
    }
    let first = text.chars().next()?;
    let rest = &text[first.len_utf8()..];
    if rest.is_empty() || rest.chars().any(char::is_uppercase) {
        return None;
    }
    let other = if first.is_uppercase() {
        format!("{}{rest}", first.to_lowercase())
    } else {
        format!("{}{rest}", first.to_uppercase())
    };
    entries.get(&*other)
}

fn sound<'a>(entry: &'a Entry, tag: &str, following: Following) -> Option<&'a str> {
    let sounds = match entry {
        Entry::Always(sound) => return Some(sound),
        Entry::ByTag(sounds) => sounds,
    };
    let pause = sounds.get("None").filter(|_| following.vowel.is_none());
    let found = pause.or_else(|| sounds.get(tag)).or_else(|| sounds.get(parent(tag)));
    found.or_else(|| sounds.get("DEFAULT"))?.as_deref()
}

/// True for "U.S." and "e.g".
fn is_dotted(text: &str) -> bool {
    text.trim_matches('.').contains('.')
        && text.chars().all(|letter| letter == '.' || letter.is_alphabetic())
        && text.split('.').all(|part| part.chars().count() < 3)
}

fn parent(tag: &str) -> &str {
    let parents = [("VB", "VERB"), ("NN", "NOUN"), ("RB", "ADV"), ("JJ", "ADJ")];
    parents.iter().find(|(start, _)| tag.starts_with(start)).map_or(tag, |(_, parent)| parent)
}

fn with_s(stem: String) -> String {
    match stem.chars().next_back() {
        Some(last) if "ptkfθ".contains(last) => stem + "s",
        Some(last) if "szʃʒʧʤ".contains(last) => stem + "ᵻz",
        Some(_) | None => stem + "z",
    }
}

fn with_ed(stem: String) -> String {
    let mut last = stem.chars().rev();
    match (last.next(), last.next()) {
        (Some(last), _) if "pkfθʃsʧ".contains(last) => stem + "t",
        (Some('d'), _) => stem + "ᵻd",
        (Some('t'), Some(before)) if TAPPED_AFTER.contains(before) => {
            format!("{}ɾᵻd", stem.trim_end_matches('t'))
        }
        (Some('t'), Some(_)) => stem + "ᵻd",
        (Some('t'), None) => stem + "ɪd",
        (_, _) => stem + "d",
    }
}

fn with_ing(stem: String) -> String {
    let mut last = stem.chars().rev();
    match (last.next(), last.next()) {
        (Some('t'), Some(before)) if TAPPED_AFTER.contains(before) => {
            format!("{}ɾɪŋ", stem.trim_end_matches('t'))
        }
        (_, _) => stem + "ɪŋ",
    }
}

/// The phonemes with more or less stress.
pub(super) fn stressed(phonemes: &str, stress: Stress) -> String {
    let Some(stress) = stress else { return phonemes.to_owned() };
    let (primary, secondary) = (phonemes.contains(PRIMARY), phonemes.contains(SECONDARY));
    if stress < -1.0 {
        phonemes.replace([PRIMARY, SECONDARY], "")
    } else if stress == -1.0 || (stress <= 0.0 && primary) {
        phonemes.replace(SECONDARY, "").replace(PRIMARY, "ˌ")
    } else if stress >= 0.0 && !primary && !secondary {
        let mark = if stress > 1.0 { PRIMARY } else { SECONDARY };
        let vowel = phonemes.find(|phoneme: char| VOWELS.contains(phoneme));
        vowel.map_or_else(
            || phonemes.to_owned(),
            |at| format!("{}{mark}{}", &phonemes[..at], &phonemes[at..]),
        )
    } else if stress >= 1.0 && !primary && secondary {
        phonemes.replace(SECONDARY, "ˈ")
    } else {
        phonemes.to_owned()
    }
}
