//! Tests of followers: history first, then live items, each once and in order.

use std::time::Duration;

use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{Cursor, SessionId};

use crate::gated_store::Gate;
use crate::world::{Client, World, settle, within};

#[tokio::test(start_paused = true)]
async fn history_comes_before_live_items() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "one").await.unwrap();
    let asked = world.asked().await;
    asked.say("first");
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;

    let mut watcher = runtime.watch(&session, Cursor::START).await;
    runtime.say(&session, "two").await.unwrap();
    let asked = world.asked().await;
    asked.say("sec");
    let first = "<created><said><turn><step>first<answered><done>";
    watcher.until(&format!("{first}<said><turn><step>sec")).await;
    asked.say("ond");
    asked.finish();
    watcher.turn_over().await;
    assert_eq!(watcher.story(), format!("{first}<said><turn><step>second<answered><done>"));
}

#[tokio::test(start_paused = true)]
async fn followers_see_the_same_in_the_same_order() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut one = runtime.watch(&session, Cursor::START).await;
    let mut two = runtime.watch(&session, Cursor::START).await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    for n in 0..50 {
        asked.think("hm");
        asked.say(&format!("{n} "));
        one.peek().await;
        if n % 7 == 0 {
            two.peek().await;
            runtime.label(&session, &format!("k{n}")).await.unwrap();
        }
    }
    asked.finish();
    one.turn_over().await;
    two.turn_over().await;
    assert_eq!(one.text(), two.text());
    assert_eq!(events(&one.story()), events(&two.story()));
}

/// The events of a story.
fn events(story: &str) -> String {
    story.split('<').filter_map(|rest| rest.split_once('>')).map(|(name, _)| name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_slow_follower_reads_the_journal() {
    let mut world = World::new();
    world.timing.flush_bytes = 10;
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut slow = runtime.watch(&session, Cursor::START).await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    slow.until("<step>").await;
    let mut text = String::new();
    for n in 0..2000 {
        let word = format!("{n:04}, ");
        asked.say(&word);
        text.push_str(&word);
    }
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    // Far more happened than the tail holds.
    assert!(world.journal_of(&session).await.len() > 500);
    slow.turn_over().await;
    assert_eq!(slow.text(), text);
    assert_eq!(slow.story(), format!("<created><said><turn><step>{text}<answered><done>"));
}

#[tokio::test(start_paused = true)]
async fn following_a_hibernated_session_does_not_load_it() {
    let mut world = World::new();
    world.timing.hibernate_after = Duration::from_secs(1);
    let runtime = world.start();
    let session = runtime.begin().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(runtime.awake(), 0);
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("<created>").await;
    assert_eq!(runtime.awake(), 0);
    for key in ["a", "b", "c"] {
        runtime.label(&session, key).await.unwrap();
        watcher.until("<labelled>").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(runtime.awake(), 0);
        watcher.peek().await;
    }
    assert_eq!(watcher.story(), "<created><labelled><labelled><labelled>");
}

#[tokio::test(start_paused = true)]
async fn positions_that_do_not_exist_are_refused() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.label(&session, "a").await.unwrap();
    let ahead = runtime.follow(&session, Cursor::after(3)).await.err();
    assert!(matches!(ahead, Some(Error::Ahead(3, 2))), "{ahead:?}");
    assert_eq!(runtime.follow(&session, Cursor::after(2)).await.unwrap().head(), 2);

    let unknown = SessionId::parse("sess_nobody").unwrap();
    let missing = runtime.follow(&unknown, Cursor::START).await.err();
    assert!(matches!(missing, Some(Error::NotFound(id)) if id == unknown));
    let missing = runtime.view(&unknown).await.err();
    assert!(matches!(missing, Some(Error::NotFound(_))));
    let missing = runtime.label(&unknown, "a").await.err();
    assert!(matches!(missing, Some(Error::NotFound(_))));
    assert_eq!(runtime.awake(), 1);
}

/// An append may be readable shortly before the session's task learns that it is durable.
#[tokio::test(start_paused = true)]
async fn a_follower_ahead_of_the_task_receives_no_old_text() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    asked.say("looking");
    runtime.watch(&session, Cursor::START).await.until("looking").await;
    world.journal.set(Gate::Late);
    // The tool is unknown, so the next step begins in the same batch.
    asked.call(&[("c1", "nothing", "{}")]);
    let second = world.asked().await;
    // The approval request is published first, then the batch.
    settle().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("looking<answered><result><step>").await;
    settle().await;
    watcher.peek().await;
    second.say("done");
    settle().await;
    watcher.peek().await;
    world.journal.set(Gate::Open);
    second.finish();
    watcher.turn_over().await;
    let expected = "<created><said><turn><step>looking<answered><result><step>done<answered><done>";
    assert_eq!(watcher.story(), expected);
}

#[tokio::test(start_paused = true)]
async fn progress_of_a_call_comes_between_its_start_and_its_end() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut quick = runtime.watch(&session, Cursor::START).await;
    let mut slow = runtime.watch(&session, Cursor::START).await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    slow.until("<call>").await;
    job.say("a");
    quick.until("<call>[a]").await;
    job.say("b");
    quick.until("[a][b]").await;
    // Later followers read all output in the outcome.
    let mut late = runtime.watch(&session, Cursor::START).await;
    job.finish(Outcome::success("ab"));
    world.asked().await.finish();
    for watcher in [&mut quick, &mut slow, &mut late] {
        watcher.turn_over().await;
    }
    assert!(quick.story().contains("<call>[a][b]<result>"), "{}", quick.story());
    assert!(slow.story().contains("<call>[a][b]<result>"), "{}", slow.story());
    assert!(late.story().contains("<call><result>"), "{}", late.story());
}
