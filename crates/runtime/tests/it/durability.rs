//! Tests that nothing is published before it is durable, and that nothing waits for a sync without
//! need.

use std::time::Duration;

use quintet_kernel::Cursor;
use quintet_kernel::port::Sessions;
use quintet_kernel::tool::Outcome;

use crate::gated_store::Gate;
use crate::world::{Client, World, label, name, say, settle, waits, within};

#[tokio::test(start_paused = true)]
async fn a_message_is_acknowledged_and_shown_once_it_is_durable() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("<created>").await;

    world.journal.set(Gate::Shut);
    let mut submitted = runtime.submit(&session, say("hello"));
    assert!(waits(&mut submitted).await);
    // The model is called meanwhile, because that can be repeated. Its text is not shown, because
    // the start of the step is not published yet.
    let asked = world.asked().await;
    asked.say("Hi");
    settle().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(waits(&mut submitted).await);
    watcher.peek().await;
    assert_eq!(watcher.story(), "<created>");
    assert_eq!(world.names_of(&session).await, ["created"]);

    world.journal.set(Gate::Open);
    let receipt = within(submitted).await.unwrap();
    let actual: Vec<_> = receipt.records.iter().map(|record| name(&record.event)).collect();
    assert_eq!(actual, ["said", "turn", "step"]);
    watcher.until("<step>Hi").await;
    asked.finish();
    watcher.turn_over().await;
    assert_eq!(watcher.story(), "<created><said><turn><step>Hi<answered><done>");
    assert_eq!(world.model.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_message_and_the_start_of_its_turn_share_one_append() {
    let mut world = World::new();
    world.context_tokens = 100;
    world.folder.write("a.rs", "");
    let runtime = world.start();
    let session = runtime.begin().await;
    let before = world.journal.appends();
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    let names = world.names_of(&session).await;
    assert_eq!(names, ["created", "said", "turn", "context", "step"]);
    assert_eq!(world.journal.appends(), before + 1);
    asked.say("Hi");
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    assert_eq!(
        world.journal.appends(),
        before + 2,
        "the text and the end of the turn are one, too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_session_exists_once_it_is_durable() {
    let world = World::new();
    let runtime = world.start();
    world.journal.set(Gate::Shut);
    let mut created = runtime.create(crate::world::origin());
    assert!(waits(&mut created).await);
    settle().await;
    assert!(waits(&mut created).await);
    assert!(runtime.list(10).await.unwrap().is_empty());
    world.journal.set(Gate::Open);
    let session = within(created).await.unwrap().session;
    assert_eq!(runtime.list(10).await.unwrap()[0].id, session);
}

#[tokio::test(start_paused = true)]
async fn a_tool_starts_only_once_its_start_is_durable() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "list files").await.unwrap();
    let asked = world.asked().await;
    world.journal.set(Gate::Shut);
    asked.call(&[("c1", "shell", "{}")]);
    world.journal.appended(3).await;
    settle().await;
    assert_eq!(world.shell.count(), 0);

    world.journal.set(Gate::Open);
    let job = within(world.shell.started()).await;
    assert!(world.names_of(&session).await.ends_with(&["answered", "call"]));
    job.finish(Outcome::success("a b c"));
    world.asked().await.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    assert_eq!(world.shell.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_view_shows_only_what_is_durable() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    world.journal.set(Gate::Shut);
    let mut labelled = runtime.submit(&session, label("a"));
    assert!(waits(&mut labelled).await);
    let mut viewed = runtime.view(&session);
    assert!(waits(&mut viewed).await);
    settle().await;
    assert!(waits(&mut viewed).await);
    world.journal.set(Gate::Open);
    within(labelled).await.unwrap();
    assert!(within(viewed).await.unwrap().labels.contains_key("a"));
}

#[tokio::test(start_paused = true)]
async fn commands_are_answered_in_order() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    world.journal.set(Gate::Shut);
    let keys: Vec<String> = (0..20).map(|n| format!("k{n}")).collect();
    let mut submitted: Vec<_> =
        keys.iter().map(|key| runtime.submit(&session, label(key))).collect();
    for one in &mut submitted {
        assert!(waits(one).await);
    }
    settle().await;
    world.journal.set(Gate::Open);
    for (seq, one) in (2..).zip(submitted) {
        assert_eq!(within(one).await.unwrap().records[0].seq, seq);
    }
}

/// Text never overtakes an event: a follower that disconnected right after the event would receive
/// the text twice.
#[tokio::test(start_paused = true)]
async fn text_does_not_overtake_an_event_that_was_decided_before_it() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    asked.say("before ");
    watcher.until("<step>before ").await;
    world.journal.set(Gate::Shut);
    let mut labelled = runtime.submit(&session, label("a"));
    assert!(waits(&mut labelled).await);
    settle().await;
    asked.say("after");
    settle().await;
    watcher.peek().await;
    assert!(watcher.story().ends_with("before "), "{}", watcher.story());
    world.journal.set(Gate::Open);
    watcher.until("before <labelled>").await;
    let mut back = runtime.watch(&session, watcher.position()).await;
    for watcher in [&mut watcher, &mut back] {
        watcher.until("after").await;
    }
    assert_eq!(back.story(), "after");
    asked.finish();
    watcher.turn_over().await;
    let expected = "<created><said><turn><step>before <labelled>after<answered><done>";
    assert_eq!(watcher.story(), expected);
}

#[tokio::test(start_paused = true)]
async fn held_text_is_not_shown_again_after_the_journal() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    world.journal.set(Gate::Shut);
    let mut first = runtime.submit(&session, label("a"));
    assert!(waits(&mut first).await);
    settle().await;
    asked.say("between");
    settle().await;
    let mut second = runtime.submit(&session, label("b"));
    assert!(waits(&mut second).await);
    settle().await;
    world.journal.set(Gate::Open);
    within(first).await.unwrap();
    let last = within(second).await.unwrap().records.last().unwrap().seq;
    let mut late = runtime.watch(&session, Cursor::after(last)).await;
    late.peek().await;
    assert_eq!(late.story(), "");
    asked.finish();
    late.turn_over().await;
    assert_eq!(late.story(), "<answered><done>");
    let mut whole = runtime.watch(&session, Cursor::START).await;
    whole.turn_over().await;
    assert!(whole.story().contains("<step><labelled>between<labelled><answered>"));
}

#[tokio::test(start_paused = true)]
async fn held_text_is_shown_before_later_items() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("<created>").await;
    // Enough text to be appended before the step's start is durable.
    world.journal.set(Gate::Shut);
    let mut submitted = runtime.submit(&session, say("hello"));
    assert!(waits(&mut submitted).await);
    let asked = world.asked().await;
    world.journal.end_after(2);
    let early = "x".repeat(5000);
    asked.say(&early);
    world.journal.appended(3).await;
    world.journal.set(Gate::Open);
    within(submitted).await.unwrap();
    asked.say("y");
    watcher.until(&format!("<step>{early}y")).await;
}
