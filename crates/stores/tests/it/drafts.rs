//! Tests of drafts, in files and in memory.

use std::fs::{self, OpenOptions};
use std::path::Path;

use quintet_kernel::follow::Delta;
use quintet_kernel::id::{GeneratedId, SessionId, StepId, TurnId};
use quintet_kernel::model::Channel;
use quintet_kernel::port::{Drafts, StorageError};
use quintet_kernel::time::Time;
use quintet_stores::{FileDrafts, memory};

use crate::stores_under_test::session;

pub(crate) fn piece(offset: u64, channel: Channel, text: &str) -> Delta {
    let step = StepId::parse("step_1").expect("an id");
    let turn = TurnId::parse("turn_22").expect("an id");
    Delta { turn, step, offset, channel, text: text.into(), at: Time::from_micros(-7) }
}

#[track_caller]
fn check(drafts: &dyn Drafts, name: &str, then: &str) {
    let pieces = drafts.load(&session(name)).expect("the draft can be read");
    let one = |piece: &Delta| {
        assert_eq!((piece.turn.as_str(), piece.step.as_str()), ("turn_22", "step_1"));
        assert_eq!(piece.at.micros(), -7);
        format!("{}{:?}:{}", piece.offset, piece.channel, piece.text)
    };
    assert_eq!(pieces.iter().map(one).collect::<Vec<_>>().join(" "), then);
}

/// Stores `0Text:hé 3Thought:` as the draft of `s`.
fn check_store(drafts: &dyn Drafts) {
    let s = session("s");
    check(drafts, "s", "");
    drafts.clear(&s);
    drafts.push(&s, &piece(0, Channel::Text, "old")).expect("kept");
    drafts.push(&session("t"), &piece(0, Channel::Text, "other")).expect("kept");
    check(drafts, "s", "0Text:old");
    drafts.clear(&s);
    check(drafts, "s", "");
    check(drafts, "t", "0Text:other");
    drafts.push(&s, &piece(0, Channel::Text, "hé")).expect("kept");
    drafts.push(&s, &piece(3, Channel::Thought, "")).expect("kept");
    check(drafts, "s", "0Text:hé 3Thought:");
}

#[test]
fn every_store_keeps_deltas_in_order() {
    let dir = tempfile::tempdir().unwrap();
    check_store(&memory::MemoryStore::new());
    check_store(&FileDrafts::open(dir.path()).unwrap());
    check(&FileDrafts::open(dir.path()).unwrap(), "s", "0Text:hé 3Thought:");
}

#[test]
fn deltas_of_one_step_store_its_id_once() {
    let dir = tempfile::tempdir().unwrap();
    let drafts = FileDrafts::open(dir.path()).unwrap();
    let of_step = |step: &str, offset: u64| {
        let step = StepId::parse(step).expect("an id");
        Delta { step, ..piece(offset, Channel::Text, "ab") }
    };
    let s = session("s");
    let length = || fs::metadata(dir.path().join(s.as_str())).unwrap().len();
    for (step, offset) in [("step_1", 0), ("step_1", 2), ("step_2", 0)] {
        drafts.push(&s, &of_step(step, offset)).unwrap();
    }
    let short = 4 + 1 + 2;
    assert_eq!(
        length(),
        2 * (8 + 8 + 8 + 1 + 2 + 2 + 2) + 2 * ("turn_22".len() + 6) as u64 + short
    );
    drop(drafts);
    // The next daemon does not know the last record, and a clear starts over.
    let drafts = FileDrafts::open(dir.path()).unwrap();
    drafts.push(&s, &of_step("step_2", 2)).unwrap();
    let read = drafts.load(&s).unwrap();
    let steps: Vec<_> = read.iter().map(|piece| piece.step.as_str()).collect();
    assert_eq!(steps, ["step_1", "step_1", "step_2", "step_2"]);
    drafts.clear(&s);
    drafts.push(&s, &of_step("step_2", 4)).unwrap();
    assert_eq!(drafts.load(&s).unwrap()[0].step.as_str(), "step_2");
}

#[test]
fn deltas_are_read_back_whatever_fields_they_share() {
    let dir = tempfile::tempdir().unwrap();
    let drafts = FileDrafts::open(dir.path()).unwrap();
    let at = |micros: i64, piece: Delta| Delta { at: Time::from_micros(micros), ..piece };
    let long = "x".repeat(70_000);
    let written = [
        at(1_000_000, piece(0, Channel::Text, "a")),
        at(1_000_127, piece(1, Channel::Text, "b")),
        at(1_000_255, piece(2, Channel::Text, "")),
        at(9_000_000_000_000, piece(2, Channel::Text, "é")),
        // The clock was set back; the text is too long; there is a gap; the channel differs.
        at(5, piece(4, Channel::Text, "d")),
        at(6, piece(5, Channel::Text, &long)),
        at(6, piece(70_005, Channel::Text, "e")),
        at(7, piece(70_010, Channel::Text, "f")),
        at(8, piece(70_011, Channel::Thought, "g")),
        at(8, piece(70_012, Channel::Thought, "h")),
        at(i64::MIN, piece(70_013, Channel::Thought, "i")),
        at(i64::MAX, piece(70_014, Channel::Thought, "j")),
    ];
    written.iter().for_each(|piece| drafts.push(&session("s"), piece).unwrap());
    let read = drafts.load(&session("s")).unwrap();
    assert_eq!(read.len(), written.len());
    for (read, written) in read.iter().zip(&written) {
        assert_eq!(format!("{read:?}"), format!("{written:?}"));
    }
}

#[test]
fn a_draft_of_an_older_version_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let drafts = FileDrafts::open(dir.path()).unwrap();
    let body = |ids: [&str; 2], offset: u64, text: &str| {
        let mut body = offset.to_le_bytes().to_vec();
        body.extend((-7_i64).to_le_bytes());
        body.push(0);
        for id in ids {
            body.extend(u16::try_from(id.len()).unwrap().to_le_bytes());
            body.extend(id.bytes());
        }
        body.extend(text.bytes());
        body
    };
    let mut file = Vec::new();
    for body in [body(["turn_22", "step_1"], 0, "one"), body(["", ""], 3, "two")] {
        let fnv = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        file.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
        file.extend(body.iter().fold(0x811c_9dc5, fnv).to_le_bytes());
        file.extend(body);
    }
    fs::write(dir.path().join("s"), file).unwrap();
    drafts.push(&session("s"), &piece(6, Channel::Text, "three")).unwrap();
    check(&drafts, "s", "0Text:one 3Text:two 6Text:three");
}

/// Damages the draft of `s`, then continues it as the next daemon would.
#[track_caller]
fn check_damage(damage: impl Fn(&Path), then: &str) {
    let dir = tempfile::tempdir().unwrap();
    let drafts = FileDrafts::open(dir.path()).unwrap();
    for (offset, text) in [(0, "one"), (3, "two")] {
        drafts.push(&session("s"), &piece(offset, Channel::Text, text)).unwrap();
    }
    damage(&dir.path().join("s"));
    let drafts = FileDrafts::open(dir.path()).unwrap();
    check(&drafts, "s", then);
    drafts.push(&session("s"), &piece(9, Channel::Text, "more")).unwrap();
    check(&drafts, "s", format!("{then} 9Text:more").trim());
}

#[test]
fn an_incomplete_end_is_left_out() {
    let second = 4 + 1 + 3;
    let first = 8 + 8 + 8 + 1 + 2 + 2 + 3 + ("turn_22".len() + "step_1".len()) as u64;
    for len in 0..=first + second {
        let cut = |path: &Path| {
            OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
        };
        let whole = usize::from(len >= first) + usize::from(len == first + second);
        let then = ["", "0Text:one", "0Text:one 3Text:two"][whole];
        check_damage(cut, then);
    }
}

#[test]
fn a_wrong_byte_ends_the_draft() {
    let flip = |at_end: usize| {
        move |path: &Path| {
            let mut bytes = fs::read(path).unwrap();
            let at = bytes.len() - at_end;
            bytes[at] ^= 1;
            fs::write(path, bytes).unwrap();
        }
    };
    check_damage(flip(1), "0Text:one");
    check_damage(flip(4), "0Text:one");
    check_damage(flip(6), "0Text:one");
    check_damage(flip(8), "0Text:one");
    check_damage(flip(20), "");
    check_damage(flip(46), "");
    check_damage(|path| fs::write(path, [0; 64]).unwrap(), "");
}

#[test]
fn an_id_that_is_a_path_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("victim"), "v").unwrap();
    let drafts = FileDrafts::open(&dir.path().join("drafts")).unwrap();
    let id = SessionId::named("../victim".into());
    let kept = drafts.push(&id, &piece(0, Channel::Text, "x"));
    assert!(matches!(kept, Err(StorageError::Unavailable(_))), "{kept:?}");
    assert!(drafts.load(&id).is_err());
    drafts.clear(&id);
    assert_eq!(fs::read(dir.path().join("victim")).unwrap(), b"v");
}

#[test]
fn a_released_draft_is_closed_and_deleted_only_if_empty() {
    let dir = tempfile::tempdir().unwrap();
    let drafts = FileDrafts::open(dir.path()).unwrap();
    let (s, t) = (session("s"), session("t"));
    for name in [&s, &t] {
        drafts.push(name, &piece(0, Channel::Text, "one")).unwrap();
    }
    drafts.clear(&t);
    assert_eq!(open_in(dir.path()), 2);
    drafts.release(&s);
    drafts.release(&t);
    drafts.release(&session("n"));
    assert_eq!(open_in(dir.path()), 0);
    check(&drafts, "s", "0Text:one");
    assert!(!dir.path().join("t").exists());
    drafts.push(&s, &piece(3, Channel::Text, "two")).unwrap();
    check(&drafts, "s", "0Text:one 3Text:two");
    drafts.clear(&s);
    drafts.release(&s);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// Number of files of a directory that this process has open.
fn open_in(dir: &Path) -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap().flatten();
    files.filter(|file| fs::read_link(file.path()).is_ok_and(|to| to.starts_with(dir))).count()
}
