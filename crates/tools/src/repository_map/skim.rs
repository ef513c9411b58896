//! Skims a file: the names it seems to define, and how often it uses which names.
//!
//! Parsing every file of a large tree takes too long. A skim reads words, without comments and strings, nearly
//! as fast as the disk, and is good enough to weigh names and to find the files worth parsing. A wrong guess
//! never shows in the map, because the parser decides; and it does not spread, because a string ends with its
//! line at the latest.
//!
//! A word counts as a use if it is called, or begins with a capital letter like types and constants. Any other word
//! could be a local variable.

use super::languages::{Functions, Language, Lexis};
use super::name::Name;

mod pass;

/// What a skim of a file found.
#[derive(Debug, Default)]
pub(super) struct Skim {
    /// In the order of the names, each once.
    pub(super) defined: Box<[Name]>,
    /// How often a name is used, in the order of the names.
    pub(super) uses: Box<[(Name, u32)]>,
}

impl Skim {
    pub(super) fn of(language: &Language, text: &[u8]) -> Self {
        let mut reader = Reader::new(language, text).read();
        reader.defined.sort_unstable();
        reader.defined.dedup();
        Self { defined: reader.defined.into(), uses: counted(reader.uses) }
    }

    /// How much memory it takes, about.
    pub(super) fn size(&self) -> usize {
        size_of_val(&*self.defined) + size_of_val(&*self.uses)
    }
}

/// Where lines begin in which functions seem to begin.
pub(super) fn functions(language: &Language, text: &[u8]) -> Vec<usize> {
    let mut functions = Reader::new(language, text).read().functions;
    functions.dedup();
    functions
}

fn counted(mut names: Vec<Name>) -> Box<[(Name, u32)]> {
    names.sort_unstable();
    names.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect()
}

/// What precedes a word in its line, apart from space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// The start of the line, or something of no matter.
    Nothing,
    /// A word after which a function is defined.
    Announcing,
    /// A word after which another name is defined.
    Defining,
    /// A word after which a name is defined if the line is not indented.
    Topmost,
    /// A word after which a name is defined if a body follows.
    Embodying,
    /// The end of a body.
    Body,
}

struct Reader<'a> {
    language: &'a Language,
    lexis: &'a Lexis,
    text: &'a [u8],
    at: usize,
    line: usize,
    before: Before,
    /// Whether the line may still show that it begins a function: no name in it was called yet, nor
    /// was any given a value.
    is_fresh: bool,
    defined: Vec<Name>,
    uses: Vec<Name>,
    /// Where lines begin in which functions do.
    functions: Vec<usize>,
}

impl<'a> Reader<'a> {
    fn new(language: &'a Language, text: &'a [u8]) -> Self {
        let lexis = &language.lexis;
        Self {
            language,
            lexis,
            text,
            at: 0,
            line: 0,
            before: Before::Nothing,
            is_fresh: true,
            defined: Vec::new(),
            uses: Vec::new(),
            functions: Vec::new(),
        }
    }

    fn read(mut self) -> Self {
        while self.at < self.text.len() {
            self.step();
        }
        self
    }

    /// Reads what begins here.
    fn step(&mut self) {
        let byte = self.text[self.at];
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => return self.word(),
            b'\n' => {
                (self.line, self.before, self.is_fresh) = (self.at + 1, Before::Nothing, true);
            }
            // These may be between a keyword and the name: `macro_rules!`, `function*`.
            b' ' | b'\t' | b'!' | b'*' => (),
            b'0'..=b'9' => return self.number(),
            b'}' => self.before = Before::Body,
            b'"' | b'\'' | b'`' | b'/' | b'#' if self.passes() => return,
            b'=' => (self.before, self.is_fresh) = (Before::Nothing, false),
            // As in `if (called(x)) {`; but a method in Go begins like this, if not further in.
            b'(' if self.lexis.functions == Functions::Braced || !self.is_unindented() => {
                (self.before, self.is_fresh) = (Before::Nothing, false);
            }
            _ => self.before = Before::Nothing,
        }
        self.at += 1;
    }

    fn word(&mut self) {
        let start = self.at;
        let length = self.text[start..].iter().position(|byte| !is_of_word(*byte));
        self.at = length.map_or(self.text.len(), |length| start + length);
        let word = &self.text[start..self.at];
        let next_before = self.as_before(word);
        let before = std::mem::replace(&mut self.before, next_before);
        if self.before != Before::Nothing || word.len() < 2 {
            return;
        }
        let next = self.text.get(self.at).copied().unwrap_or(b'\n');
        if before == Before::Announcing || next == b'(' && self.begins_function(start) {
            self.functions.push(self.line);
            self.defined.push(Name::of(self.language.family, word));
        } else if self.defines(start, before, next) {
            self.defined.push(Name::of(self.language.family, word));
        } else if self.uses(word, before, next) && !self.is_attribute(start) {
            self.uses.push(Name::of(self.language.family, word));
        }
        self.is_fresh &= next != b'(';
    }

    /// The role of a word for the next one.
    fn as_before(&self, word: &[u8]) -> Before {
        let is_in = |words: &[&str]| words.iter().any(|known| known.as_bytes() == word);
        if is_in(self.lexis.announcing) {
            Before::Announcing
        } else if is_in(self.lexis.defining) {
            Before::Defining
        } else if is_in(self.lexis.topmost) {
            Before::Topmost
        } else if is_in(self.lexis.embodying) {
            Before::Embodying
        } else {
            Before::Nothing
        }
    }

    /// Whether the word that is here, and begins at `start`, is being defined.
    fn defines(&self, start: usize, before: Before, next: u8) -> bool {
        match before {
            Before::Announcing | Before::Defining => true,
            Before::Embodying => matches!(self.after(), b'{' | b'\n' | b':'),
            Before::Topmost => self.is_unindented(),
            // The name at the end of a `typedef`, which may be a `struct { … } name;`
            Before::Body if next == b';' => !self.lexis.embodying.is_empty(),
            Before::Nothing if next == b';' => self.text[self.line..].starts_with(b"typedef "),
            Before::Body | Before::Nothing => {
                let may_be = self.lexis.assigns && start == self.line;
                may_be && matches!(self.after(), b'=' | b':')
            }
        }
    }

    /// Whether a line in which the name that is called here is the first begins a function.
    fn begins_function(&self, start: usize) -> bool {
        if !self.is_fresh || self.lexis.functions == Functions::Announced {
            return false;
        }
        let is_method_call = start > 0 && self.text[start - 1] == b'.';
        let rest = &self.text[self.at..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let rest = rest[..end].trim_ascii_end();
        let is_braced = rest.ends_with(b"{") && !rest.ends_with(b"=> {") || rest.ends_with(b"}");
        let may_be_bare = self.lexis.functions == Functions::Unindented && self.is_unindented();
        !is_method_call && (is_braced || may_be_bare && !rest.ends_with(b";"))
    }

    fn is_unindented(&self) -> bool {
        let starts = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        self.text.get(self.line).is_some_and(starts)
    }

    fn uses(&self, word: &[u8], before: Before, next: u8) -> bool {
        let called = || match next {
            b'(' => true,
            b'!' => matches!(self.text.get(self.at + 1), Some(b'(' | b'[' | b'{')),
            b':' => self.text[self.at..].starts_with(b"::<"),
            _ => false,
        };
        word[0].is_ascii_uppercase()
            || before == Before::Embodying
            || called()
            || word.ends_with(b"_t")
    }

    /// Whether the word that begins here is that of an attribute such as `#[cfg(…)]`.
    fn is_attribute(&self, start: usize) -> bool {
        let before = self.text[..start].strip_suffix(b"[");
        before.is_some_and(|before| before.ends_with(b"#") || before.ends_with(b"#!"))
    }

    /// What comes after the word, past spaces.
    fn after(&self) -> u8 {
        let rest = self.text[self.at..].iter().copied();
        rest.into_iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).unwrap_or(b'\n')
    }

    fn number(&mut self) {
        let length = self.text[self.at..].iter().position(|byte| !is_of_word(*byte));
        self.at = length.map_or(self.text.len(), |length| self.at + length);
        self.before = Before::Nothing;
    }

    /// Passes over a comment or a string, if one begins here.
    fn passes(&mut self) -> bool {
        let Some(length) = pass::length(self.lexis, &self.text[self.at..]) else { return false };
        self.at += length;
        self.before = Before::Nothing;
        true
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}

#[cfg(test)]
mod tests;
