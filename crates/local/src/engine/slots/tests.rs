//! Tests of which slot a prompt gets.

use llama_cpp_2::token::LlamaToken;

use super::{DROPPED_TOKENS_LIMIT, Place, SLOTS, Slots};

/// One token per letter of a text.
fn tokens(text: &str) -> Vec<LlamaToken> {
    text.bytes().map(|byte| LlamaToken(byte.into())).collect()
}

/// Places a prompt and marks all of it as evaluated.
fn read(slots: &mut Slots, text: &str) -> Place {
    let prompt = tokens(text);
    let place = slots.place(&prompt);
    slots.extend(place.slot, &prompt[place.known..]);
    assert_eq!(slots.len(place.slot), prompt.len());
    place
}

#[test]
fn a_continued_prompt_keeps_its_slot() {
    let mut slots = Slots::default();
    let first = read(&mut slots, "hello");
    assert_eq!(first.known, 0);
    let second = read(&mut slots, "hello world");
    assert_eq!((second.slot, second.like, second.known), (first.slot, first.slot, 5));
    let again = read(&mut slots, "hello world");
    assert_eq!(again.known, 10, "the last token is evaluated again");
}

#[test]
fn a_diverging_prompt_does_not_change_the_other_slot() {
    let mut slots = Slots::default();
    let long = format!("system {}", "a".repeat(DROPPED_TOKENS_LIMIT + 1));
    let first = read(&mut slots, &long);
    let second = read(&mut slots, "system b");
    assert_ne!(second.slot, first.slot);
    assert_eq!((second.like, second.known), (first.slot, 7));
    assert_eq!(read(&mut slots, &format!("{long}!")).known, long.len());
}

#[test]
fn the_least_recently_used_slot_is_evicted() {
    let mut slots = Slots::default();
    let line = |n: usize| format!("{n}{}", "x".repeat(2 * DROPPED_TOKENS_LIMIT));
    let first = read(&mut slots, &line(0)).slot;
    let others: Vec<usize> = (1..SLOTS).map(|n| read(&mut slots, &line(n)).slot).collect();
    assert!(!others.contains(&first));
    assert_eq!(read(&mut slots, &line(SLOTS)).slot, first);
    assert_eq!(slots.evict(first), Some(others[0]));
}
