//! Tests that a follower can disconnect and resume at every byte position.

use quintet_kernel::tool::Outcome;
use quintet_kernel::{Cursor, Event, Record, SessionId};
use quintet_runtime::Runtime;

use crate::watcher::{Watcher, write};
use crate::world::{Client, World, name, within};

const FIRST: &str = "Grüße, 世界! ";
const SECOND: &str = "und noch etwas";

/// Every position that a follower can have, and what it must receive from there.
fn positions(records: &[Record]) -> Vec<(Cursor, String)> {
    let mut positions = vec![(Cursor::START, rest(records, Cursor::START))];
    let mut written = None;
    for (n, record) in records.iter().enumerate() {
        match &record.event {
            Event::StepStarted { .. } => written = Some(0),
            Event::TextAppended { offset, text, .. } => written = Some(offset + text.len() as u64),
            Event::ModelCompleted { .. } | Event::StepInterrupted { .. } => written = None,
            _ => {}
        }
        let bare = Cursor::after(record.seq);
        positions.push((bare, rest(records, bare)));
        let Some(written) = written else { continue };
        // Streamed bytes become durable before the step ends.
        let ahead = records[n + 1..].iter().map_while(|record| match &record.event {
            Event::TextAppended { offset, text, .. } => Some(Some((*offset, text))),
            Event::ModelCompleted { .. } => None,
            _ => Some(None),
        });
        let ends = ahead.flatten().flat_map(|(offset, text)| {
            text.char_indices().map(move |(at, c)| offset + (at + c.len_utf8()) as u64)
        });
        for offset in std::iter::once(written).chain(ends) {
            let cursor = Cursor { seq: record.seq, offset };
            positions.push((cursor, rest(records, cursor)));
        }
    }
    positions
}

fn rest(records: &[Record], from: Cursor) -> String {
    let mut story = String::new();
    let mut seen = from.offset;
    for record in records.iter().filter(|record| record.seq > from.seq) {
        match &record.event {
            Event::TextAppended { offset, channel, text, .. } => {
                let known = usize::try_from(seen.saturating_sub(*offset)).unwrap();
                if let Some(text) = text.get(known..).filter(|text| !text.is_empty()) {
                    write(&mut story, *channel, text);
                }
            }
            event => {
                if let Event::StepStarted { .. } = event {
                    seen = 0;
                }
                story.push_str(&format!("<{}>", name(event)));
            }
        }
    }
    story
}

/// A turn with a tool call, thoughts and characters of several bytes, up to its last step.
async fn run_turn(world: &World, runtime: &Runtime, session: &SessionId) {
    runtime.say(session, "go").await.unwrap();
    let asked = world.asked().await;
    asked.think("hmm… ");
    for word in FIRST.split_inclusive(' ') {
        asked.say(word);
        tokio::time::sleep(world.timing.flush_after * 2).await;
    }
    runtime.label(session, "between").await.unwrap();
    asked.say("é");
    asked.call(&[("c1", "look", "{}")]);
    within(world.look.started()).await.finish(Outcome::success("nothing"));
}

#[tokio::test(start_paused = true)]
async fn every_position_of_a_finished_session() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    run_turn(&world, &runtime, &session).await;
    let asked = world.asked().await;
    asked.say(SECOND);
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;

    let records = world.journal_of(&session).await;
    let positions = positions(&records);
    assert!(positions.len() > 50, "{}", positions.len());
    for (from, expected) in positions {
        let mut watcher = runtime.watch(&session, from).await;
        watcher.peek().await;
        assert_eq!(watcher.story(), expected, "from {from}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_position_of_a_running_session() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    run_turn(&world, &runtime, &session).await;
    let asked = world.asked().await;
    let mut words = SECOND.split_inclusive(' ');
    // One word is durable, the next is streamed before the followers connect, and the last after
    // that.
    asked.say(words.next().unwrap());
    tokio::time::sleep(world.timing.flush_after * 2).await;
    asked.say(words.next().unwrap());
    runtime.watch(&session, Cursor::START).await.until("und noch ").await;
    let head = world.journal_of(&session).await.len() as u64;

    let mut watchers: Vec<(Cursor, Watcher)> = Vec::new();
    for seq in 0..=head {
        for offset in 0..40 {
            let from = Cursor { seq, offset };
            let mut watcher = runtime.watch(&session, from).await;
            watcher.peek().await;
            watchers.push((from, watcher));
        }
    }
    asked.say(words.next().unwrap());
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;

    let expected = positions(&world.journal_of(&session).await);
    let mut checked = 0;
    for (from, mut watcher) in watchers {
        watcher.peek().await;
        if let Some((_, expected)) = expected.iter().find(|(at, _)| *at == from) {
            assert_eq!(watcher.story(), *expected, "from {from}");
            checked += 1;
        }
    }
    assert!(checked > 50, "{checked}");
}

#[tokio::test(start_paused = true)]
async fn reconnecting_after_every_item_loses_and_repeats_nothing() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    run_turn(&world, &runtime, &session).await;
    let asked = world.asked().await;
    let mut whole = runtime.watch(&session, Cursor::START).await;
    let (mut items, mut at) = (Vec::new(), Cursor::START);
    for c in SECOND.chars() {
        asked.say(&c.to_string());
        let mut visit = runtime.watch(&session, at).await;
        within(visit.more()).await.unwrap();
        at = visit.position();
        items.append(&mut visit.items);
    }
    asked.finish();
    whole.turn_over().await;
    let mut last = runtime.watch(&session, at).await;
    last.turn_over().await;
    items.append(&mut last.items);
    assert_eq!(crate::watcher::story(&items), whole.story());
}
