//! Tests that streamed text is appended in few and contiguous pieces.

use std::time::Duration;

use quintet_kernel::model::{Channel, Chunk};
use quintet_kernel::port::{Drafts, Sessions as _};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{Command, Cursor, Event, SessionId};
use quintet_runtime::Runtime;
use quintet_testkit::scripted_model::{ScriptedCall, response};

use crate::gated_store::Gate;
use crate::world::{Client, World, settle, within};

async fn thinking(world: &World) -> (Runtime, SessionId, ScriptedCall) {
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    (runtime, session, asked)
}

/// The durable text so far: offset, channel, text.
async fn texts(world: &World, session: &SessionId) -> Vec<(u64, Channel, String)> {
    let text = |event: Event| match event {
        Event::TextAppended { offset, channel, text, .. } => Some((offset, channel, text)),
        _ => None,
    };
    world.journal_of(session).await.into_iter().filter_map(|record| text(record.event)).collect()
}

#[tokio::test(start_paused = true)]
async fn text_is_appended_after_the_flush_interval() {
    let world = World::new();
    let (_runtime, session, asked) = thinking(&world).await;
    asked.say("a");
    tokio::time::sleep(world.timing.flush_after * 6 / 10).await;
    asked.say("b");
    tokio::time::sleep(world.timing.flush_after * 3 / 10).await;
    assert_eq!(texts(&world, &session).await, []);
    tokio::time::sleep(world.timing.flush_after * 2 / 10).await;
    assert_eq!(texts(&world, &session).await, [(0, Channel::Text, "ab".into())]);
    // The timer starts with the next byte, not with the last flush.
    tokio::time::sleep(world.timing.flush_after * 10).await;
    asked.say("c");
    tokio::time::sleep(world.timing.flush_after * 9 / 10).await;
    assert_eq!(texts(&world, &session).await.len(), 1);
    tokio::time::sleep(world.timing.flush_after * 2 / 10).await;
    assert_eq!(texts(&world, &session).await[1], (2, Channel::Text, "c".into()));
}

#[tokio::test(start_paused = true)]
async fn text_is_appended_once_enough_bytes_are_buffered() {
    let mut world = World::new();
    world.timing.flush_bytes = 8;
    let (_runtime, session, asked) = thinking(&world).await;
    for word in ["1234", "567", "8", "90"] {
        asked.say(word);
    }
    settle().await;
    assert_eq!(texts(&world, &session).await, [(0, Channel::Text, "12345678".into())]);
}

#[tokio::test(start_paused = true)]
async fn text_is_appended_before_every_other_event() {
    let world = World::new();
    let (runtime, session, asked) = thinking(&world).await;
    asked.think("hm");
    asked.say("a");
    asked.say("b");
    settle().await;
    runtime.label(&session, "now").await.unwrap();
    asked.say("c");
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    let expected = [(0, Channel::Thought, "hm"), (2, Channel::Text, "ab"), (4, Channel::Text, "c")];
    let expected = expected.map(|(offset, channel, text)| (offset, channel, text.to_owned()));
    assert_eq!(texts(&world, &session).await, expected);
    let names = world.names_of(&session).await;
    assert_eq!(names[4..], ["text", "text", "labelled", "text", "answered", "done"]);
}

#[tokio::test(start_paused = true)]
async fn drafts_hold_shown_text_and_are_cleared_after_the_turn() {
    let world = World::new();
    let (runtime, session, asked) = thinking(&world).await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    for word in ["one ", "two ", "three"] {
        asked.say(word);
        watcher.until(word).await;
        let drafts = world.store.load(&session).unwrap();
        let drafted: String = drafts.iter().map(|piece| &*piece.text).collect();
        assert_eq!(drafted, watcher.text());
    }
    asked.finish();
    watcher.turn_over().await;
    assert!(world.store.load(&session).unwrap().is_empty());
}

/// A long turn, or a queue of turns, must not make a draft grow without limit.
#[tokio::test(start_paused = true)]
async fn drafts_are_cleared_after_each_step_unless_the_next_one_writes() {
    let world = World::new();
    let (runtime, session, asked) = thinking(&world).await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    asked.say("I look");
    asked.call(&[("c1", "look", "{}")]);
    let job = within(world.look.started()).await;
    assert!(world.store.load(&session).unwrap().is_empty());
    // The next step writes before the end of the call is durable.
    world.journal.set(Gate::Shut);
    job.finish(Outcome::success("fine"));
    let asked = world.asked().await;
    asked.say("done");
    settle().await;
    world.journal.set(Gate::Open);
    watcher.until("done").await;
    assert_eq!(world.store.load(&session).unwrap().len(), 1);
    asked.finish();
    watcher.turn_over().await;
    assert!(world.store.load(&session).unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_shown_of_a_step_after_its_end() {
    let world = World::new();
    let (runtime, session, asked) = thinking(&world).await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("<step>").await;
    let text = |text: &str| Chunk::Output(Channel::Text, text.into());
    world.journal.set(Gate::Shut);
    asked.send(vec![text("in "), Chunk::Finished(response(Vec::new())), text("too late")]);
    settle().await;
    watcher.peek().await;
    world.journal.set(Gate::Open);
    watcher.turn_over().await;
    settle().await;
    watcher.peek().await;
    assert_eq!(watcher.story(), "<created><said><turn><step>in <answered><done>");
    assert!(world.store.load(&session).unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_at_its_time_limit() {
    let mut world = World::new();
    world.time = Duration::from_secs(60);
    let (runtime, session, asked) = thinking(&world).await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    tokio::time::sleep(world.time - world.timing.flush_after / 2).await;
    asked.think("hm");
    asked.say("so…");
    watcher.turn_over().await;
    let expected = "<created><said><turn><step>(hm)so…<stop><interrupted><failed>";
    assert_eq!(watcher.story(), expected);
    let mut late = runtime.watch(&session, Cursor::START).await;
    late.turn_over().await;
    assert_eq!(late.story(), expected);
    assert!(asked.dropped());
}

#[tokio::test(start_paused = true)]
async fn an_endless_step_fails_and_keeps_its_text() {
    let world = World::new();
    let (runtime, session, asked) = thinking(&world).await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    let page = "x".repeat(1024 * 1024);
    for _ in 0..17 {
        asked.say(&page);
    }
    watcher.turn_over().await;
    assert_eq!(watcher.text().len(), 16 * page.len());
    assert!(asked.dropped());
    let records = world.journal_of(&session).await;
    let Some(Event::TurnFailed { message, .. }) = records.last().map(|last| &last.event) else {
        panic!("{:?}", records.last());
    };
    assert_eq!(message, "the model wrote more than 16777216 bytes in one answer");
}

#[tokio::test(start_paused = true)]
async fn an_endless_summary_is_not_stored() {
    let world = World::new();
    let (runtime, session, asked) = thinking(&world).await;
    asked.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    within(runtime.submit(&session, Command::Compact)).await.unwrap();
    let asked = world.asked().await;
    let page = "x".repeat(1024 * 1024);
    for _ in 0..9 {
        asked.think(&page);
        asked.say(&page);
    }
    watcher.until("<compact><not compacted>").await;
    assert!(asked.dropped());
}
