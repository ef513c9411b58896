//! A name in a form that is fast to compare.

use std::hash::{BuildHasherDefault, DefaultHasher, Hash, Hasher};

use super::languages::Family;

/// A name by a number, so that what a file uses costs little to remember. Two names with one number
/// would be ranked as one, which no one would see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Name(u64);

impl Name {
    pub(super) fn of(family: Family, text: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        family.hash(&mut hasher);
        text.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// A hasher for names, which are numbers already.
pub(super) type Plain = BuildHasherDefault<PlainHasher>;

#[derive(Debug, Default)]
pub(super) struct PlainHasher(u64);

impl Hasher for PlainHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 ^= number;
    }
}
