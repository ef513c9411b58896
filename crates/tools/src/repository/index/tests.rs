//! Which indexes say the same.

use super::*;

/// An index of this version with these entries, `(time, hash, flags, name)`, and an extension.
fn index(version: u32, entries: &[(u8, u8, u16, &str)], extension: &[u8; 4]) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
    let mut before = "";
    for (time, hash, flags, name) in entries {
        let start = bytes.len();
        bytes.extend([*time; MODE]);
        bytes.extend(0o100_644_u32.to_be_bytes());
        bytes.extend([*time; STATUS - MODE - 4]);
        bytes.extend([*hash; 20]);
        bytes.extend(flags.to_be_bytes());
        if flags & EXTENDED != 0 {
            bytes.extend(0x2000_u16.to_be_bytes());
        }
        if version == 4 {
            bytes.push(u8::try_from(before.len()).unwrap());
            before = name;
        }
        bytes.extend(name.bytes());
        bytes.push(0);
        while version < 4 && !(bytes.len() - start).is_multiple_of(8) {
            bytes.push(0);
        }
    }
    bytes.extend(extension);
    bytes.extend(3_u32.to_be_bytes());
    bytes.extend(b"abc");
    bytes.extend([7; 20]);
    bytes
}

#[test]
fn times_and_caches_make_no_difference_and_the_rest_does() {
    for version in [2, 4] {
        let one = index(version, &[(1, 1, 1, "a"), (1, 2, 5, "b/cde")], b"TREE");
        let same = |entries: &[(u8, u8, u16, &str)]| {
            says_the_same(&one, &index(version, entries, b"UNTR"))
        };
        assert!(same(&[(9, 1, 1, "a"), (8, 2, 5, "b/cde")]));
        assert!(!same(&[(1, 1, 1, "a"), (1, 3, 5, "b/cde")]));
        assert!(!same(&[(1, 1, 1, "a"), (1, 2, 5, "b/cdf")]));
        assert!(!same(&[(1, 1, 1, "a")]));
        assert!(!same(&[(1, 1, 0x1001, "a"), (1, 2, 5, "b/cde")]));
    }
    let added = |flags| index(3, &[(1, 1, flags, "a")], b"TREE");
    assert!(!says_the_same(&added(1), &added(EXTENDED | 1)));
}

#[test]
fn the_newest_file_is_known() {
    let one = index(2, &[(1, 1, 1, "a"), (9, 1, 1, "b"), (3, 1, 1, "c")], b"TREE");
    assert_eq!(newest(&one), Some((0x0909_0909, 0x0909_0909)));
    assert_eq!(newest(&one[..90]), None);
}

#[test]
fn what_is_not_understood_is_not_the_same() {
    let one = index(2, &[(1, 1, 1, "a")], b"TREE");
    let linked = index(2, &[(1, 1, 1, "a")], b"link");
    assert!(says_the_same(&one, &one) && !says_the_same(&linked, &linked));
    // Behind what is staged nothing counts.
    for end in 0..MARK.len() + 8 + 64 + 20 {
        assert!(!says_the_same(&one[..end], &one), "{end}");
    }
    assert!(!says_the_same(b"", b""));
}
