//! The time and id supply of one decision: all that a decision may know about the outside world.

use std::cell::Cell;

use crate::id::GeneratedId;
use crate::time::Time;

/// The time of a decision and its supply of ids. Equal stamps generate equal ids.
#[derive(Clone, Debug)]
pub struct Stamp {
    /// When the decision is made.
    pub at: Time,
    seed: [u64; 2],
    used: Cell<u64>,
}

impl Stamp {
    /// `seed` must be random in production; 80 bits of it end up in every id.
    pub fn new(at: Time, seed: [u64; 2]) -> Self {
        Self { at, seed, used: Cell::new(0) }
    }

    /// The same supply of ids at another time.
    #[must_use]
    pub fn at(&self, at: Time) -> Self {
        Self { at, ..self.clone() }
    }

    /// A fresh id: prefix, second, and sixteen characters of base 32.
    pub fn id<I: GeneratedId>(&self) -> I {
        let bits = self.bits();
        let mut name = String::with_capacity(40);
        name.push_str(I::PREFIX);
        name.push_str(&self.at.compact());
        name.push('_');
        name.extend((0..16).map(|i| base32((bits >> (5 * i)) & 31)));
        I::named(name)
    }

    /// A fresh id in the form of a random UUID (version 4), for protocols that promise one.
    pub fn uuid<I: GeneratedId>(&self) -> I {
        let bits = self.bits() & !(0xf << 76) & !(0b11 << 62) | (4 << 76) | (0b10 << 62);
        let hex = format!("{bits:032x}");
        let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
        I::named(parts.join("-"))
    }

    fn bits(&self) -> u128 {
        let n = self.used.get();
        self.used.set(n + 1);
        let high = mix(self.seed[0] ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let low = mix(self.seed[1].wrapping_add(n).wrapping_add(high.rotate_left(17)));
        (u128::from(high) << 64) | u128::from(low)
    }
}

fn base32(five_bits: u128) -> char {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    char::from(ALPHABET[five_bits as usize & 31])
}

/// The finalizer of SplitMix64: a bijection that spreads every input bit over the output.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{RunId, TurnId};

    #[test]
    fn the_same_stamp_gives_the_same_ids_and_never_one_twice() {
        let ids = || {
            let stamp = Stamp::new(Time::from_micros(1_735_689_600_000_000), [1, 2]);
            (0..1000).map(|_| stamp.id::<TurnId>().to_string()).collect::<Vec<_>>()
        };
        let (one, mut two) = (ids(), ids());
        assert_eq!(one, two);
        assert!(one[0].starts_with("turn_20250101t000000z_"), "{}", one[0]);
        assert_eq!(one[0].len(), "turn_20250101t000000z_".len() + 16);
        two.sort();
        two.dedup();
        assert_eq!(two.len(), 1000);
    }

    #[test]
    fn a_uuid_states_its_version() {
        let stamp = Stamp::new(Time::from_micros(0), [u64::MAX, 7]);
        for _ in 0..1000 {
            let uuid = stamp.uuid::<RunId>().to_string();
            let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
            assert_eq!(uuid.as_bytes()[14], b'4', "{uuid}");
            assert!(matches!(uuid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uuid}");
        }
    }
}
