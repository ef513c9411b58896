//! Tests of the bounded tail and of followers that have to read the journal.

use super::*;
use quintet_kernel::model::Channel;
use quintet_kernel::{Cursor, StepId};

fn appended(seq: Seq, text: &str) -> Arc<Record> {
    let (turn, step) = ids();
    let (offset, channel) = ((seq - 1) * text.len() as u64, Channel::Text);
    let event =
        Event::TextAppended { turn, step, offset, channel, text: text.into(), pieces: vec![] };
    Arc::new(Record { seq, at: Time::default(), event })
}

fn ids() -> (TurnId, StepId) {
    (TurnId::parse("t").unwrap(), StepId::parse("s").unwrap())
}

#[test]
fn only_the_newest_events_are_in_memory() {
    let tail = Tail::new();
    let (turn, step) = ids();
    let call = CallId::parse("c").unwrap();
    for seq in 1..=1000 {
        let (offset, channel, text) = ((seq - 1) * 4, Channel::Text, "text".into());
        let (turn, step, at) = (turn.clone(), step.clone(), Time::default());
        tail.push_progress((turn.clone(), call.clone()), "word".into(), at);
        tail.push(Delta { turn, step, offset, channel, text, at });
        tail.publish(&[appended(seq, "text")]);
    }
    let inner = tail.lock();
    assert_eq!(
        (inner.recent.len(), inner.progress.len(), inner.deltas.len()),
        (RECENT_EVENTS_LIMIT, PROGRESS_LIMIT, 0)
    );
}

#[test]
fn a_follower_far_behind_reads_the_journal() {
    let tail = Tail::new();
    tail.publish(&(1..=100).map(|seq| appended(seq, "text")).collect::<Vec<_>>());
    let oldest = 100 - RECENT_EVENTS_LIMIT as u64;
    let find = |seq| tail.find(&mut Cursor { seq, offset: seq * 4 }.into(), &mut 0);
    assert!(matches!(find(oldest - 1), TailRead::Behind));
    assert!(matches!(find(oldest), TailRead::Items(items) if items.len() == RECENT_EVENTS_LIMIT));
    assert!(matches!(find(100), TailRead::Nothing));
}

#[test]
fn the_tail_is_bounded_in_bytes() {
    let tail = Tail::new();
    let (turn, call) = (ids().0, CallId::parse("c").unwrap());
    let long = "x".repeat(TAIL_BYTES_LIMIT / 4);
    for seq in 1..=RECENT_EVENTS_LIMIT as u64 {
        tail.publish(&[appended(seq, &long)]);
        tail.push_progress((turn.clone(), call.clone()), long.as_str().into(), Time::default());
    }
    let inner = tail.lock();
    assert_eq!((inner.recent.len(), inner.progress.len()), (3, 4));
    drop(inner);
    // A longer event is read from the journal.
    tail.publish(&[appended(RECENT_EVENTS_LIMIT as u64 + 1, &"x".repeat(2 * TAIL_BYTES_LIMIT))]);
    let found =
        tail.find(&mut Cursor::after(RECENT_EVENTS_LIMIT as u64).into(), &mut u64::MAX.clone());
    assert!(matches!(found, TailRead::Behind));
}
