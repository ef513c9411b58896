//! Tests of workspaces: context, reverting and reviews.

use quintet_kernel::change::FileKind;
use quintet_kernel::policy::ReviewMode;
use quintet_kernel::port::{
    BlobBody, ChangedFile, FileContent, SessionInspection, Sessions, ToolOutput,
};
use quintet_kernel::tool::Outcome;
use quintet_kernel::{Command, Cursor, Event, SessionId, TurnId};
use quintet_runtime::Runtime;

use crate::world::{Client, FOREVER, World, name, settle, waits, within};

fn content(text: &str) -> Option<FileContent> {
    let bytes = text.as_bytes().to_vec();
    let (size, body) = (bytes.len() as u64, Some(BlobBody::Bytes(bytes)));
    Some(FileContent { size, body, mode: None, shape: FileKind::File })
}

/// A turn in which `a` becomes "new" and `b` is created.
async fn changed(world: &World, runtime: &Runtime) -> (SessionId, TurnId) {
    world.folder.write("a", "old");
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "edit", "{}")]);
    let job = within(world.edit.started()).await;
    world.folder.write("a", "new");
    world.folder.write("b", "more");
    let a = ChangedFile { path: "a".into(), before: content("old"), after: content("new") };
    let b = ChangedFile { path: "b".into(), before: None, after: content("more") };
    job.finish(ToolOutput { changes: vec![a, b], ..Outcome::success("edited").into() });
    world.asked().await.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    let turn = runtime.view(&session).await.unwrap().turns[0].id.clone();
    (session, turn)
}

fn revert(turn: &TurnId) -> Command {
    Command::Revert { turn: turn.clone() }
}

#[tokio::test(start_paused = true)]
async fn a_turn_is_shown_and_reverted() {
    let world = World::new();
    let runtime = world.start();
    let (session, turn) = changed(&world, &runtime).await;
    let set = within(runtime.turn_changes(&session, &turn)).await.unwrap();
    assert_eq!(set.diff, "a: \"old\" -> \"new\"\nb: \"\" -> \"more\"\n");
    let receipt = within(runtime.submit(&session, revert(&turn))).await.unwrap();
    let result: Vec<_> = receipt.records.iter().map(|record| name(&record.event)).collect();
    assert_eq!(result, ["undo", "undone"]);
    assert_eq!((world.folder.read("a").as_deref(), world.folder.read("b")), (Some("old"), None));
    assert!(within(runtime.turn_changes(&session, &turn)).await.unwrap().reverted);
    let again = within(runtime.submit(&session, revert(&turn))).await.unwrap_err();
    assert_eq!(again.to_string(), format!("the changes of turn {turn} are undone already"));
    // The revert is reapplied, unless the files were changed since.
    world.folder.write("a", "mine");
    let conflicts = within(runtime.revert_conflicts(&session, &turn)).await.unwrap();
    assert_eq!(conflicts.as_deref(), Some("a was changed since"));
    world.folder.write("a", "old");
    assert_eq!(within(runtime.revert_conflicts(&session, &turn)).await.unwrap(), None);
    assert_eq!(world.folder.read("b"), None);
    let reapply = Command::Reapply { turn: turn.clone() };
    within(runtime.submit(&session, reapply)).await.unwrap();
    assert_eq!(world.folder.read("a").as_deref(), Some("new"));
    assert_eq!(world.folder.read("b").as_deref(), Some("more"));
    assert!(!within(runtime.turn_changes(&session, &turn)).await.unwrap().reverted);
}

#[tokio::test(start_paused = true)]
async fn a_long_list_of_changes_is_shortened_in_the_event_and_reverted_completely() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "edit", "{}")]);
    let job = within(world.edit.started()).await;
    let created = |n: usize| {
        world.folder.write(&format!("f{n:04}"), "x");
        ChangedFile { path: format!("f{n:04}"), before: None, after: content("x") }
    };
    let changes = (0..1500).map(created).collect();
    job.finish(ToolOutput { changes, ..Outcome::success("edited").into() });
    world.asked().await.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    let turn = runtime.view(&session).await.unwrap().turns[0].clone();
    assert_eq!((turn.changes.len(), turn.more_changes[0].1.count), (100, 1400));
    let set = within(runtime.turn_changes(&session, &turn.id)).await.unwrap();
    assert_eq!((set.files.len(), set.more), (1000, 500));
    let receipt = within(runtime.submit(&session, revert(&turn.id))).await.unwrap();
    let undone = |record: &std::sync::Arc<quintet_kernel::event::Record>| match &record.event {
        Event::Reverted { files, more, .. } => Some((files.len(), *more)),
        _ => None,
    };
    assert_eq!(receipt.records.iter().find_map(undone), Some((100, 1400)));
    assert_eq!((world.folder.read("f0000"), world.folder.read("f1499")), (None, None));
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_a_started_revert() {
    let world = World::new();
    let runtime = world.start();
    let (session, turn) = changed(&world, &runtime).await;
    world.folder.hold_reverts(true);
    let mut undone = runtime.submit(&session, revert(&turn));
    assert!(waits(&mut undone).await);
    settle().await;
    let mut closed = Box::pin(runtime.close(FOREVER));
    assert!(waits(&mut closed).await);
    settle().await;
    assert!(waits(&mut closed).await);
    world.folder.hold_reverts(false);
    within(undone).await.unwrap();
    within(closed).await;
    assert_eq!(world.folder.read("a").as_deref(), Some("old"));
    assert!(world.names_of(&session).await.ends_with(&["undo", "undone"]));
}

#[tokio::test(start_paused = true)]
async fn a_revert_keeps_later_changes_of_others() {
    let world = World::new();
    let runtime = world.start();
    let (session, turn) = changed(&world, &runtime).await;
    world.folder.write("b", "by hand");
    let receipt = within(runtime.submit(&session, revert(&turn))).await.unwrap();
    let Event::RevertFailed { reason, .. } = &receipt.records[1].event else { panic!() };
    assert_eq!(reason, "b was changed since");
    assert_eq!(world.folder.read("a").as_deref(), Some("new"));
    assert_eq!(world.folder.read("b").as_deref(), Some("by hand"));
    // The session continues.
    runtime.say(&session, "again").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_model_gets_the_current_workspace_context() {
    let mut world = World::new();
    world.context_tokens = 100;
    world.folder.write("a.rs", "");
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    assert!(asked.prompt.system.ends_with("Workspace context:\nREPO TREE:\na.rs"));
    asked.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    world.folder.write("b.rs", "");
    runtime.say(&session, "more").await.unwrap();
    let asked = world.asked().await;
    assert!(asked.prompt.system.ends_with("REPO TREE:\na.rs"), "sent context stays unchanged");
    let result = format!("{:?}", asked.prompt.messages);
    assert!(result.contains("changed since:\\nREPO TREE:\\na.rs\\nb.rs"), "{result}");
    let names = world.names_of(&session).await;
    assert_eq!(names[..5], ["created", "said", "turn", "context", "step"]);
}

#[tokio::test(start_paused = true)]
async fn a_change_is_reviewed_by_the_model() {
    let mut world = World::new();
    world.review = ReviewMode::Auto;
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "edit", r#"{"n":1}"#)]);
    let review = world.asked().await;
    let shown = format!("{:?}", review.prompt.messages.last());
    assert!(shown.contains("edit:\\nedit {"), "{shown}");
    review.say("REJECT: it drops a test");
    review.finish();
    let next = world.asked().await;
    let result = format!("{:?}", next.prompt.messages.last());
    assert!(result.contains("review: it drops a test"), "{result}");
    next.call(&[("c2", "edit", r#"{"n":2}"#)]);
    let review = world.asked().await;
    review.say("APPROVE: better");
    review.finish();
    within(world.edit.started()).await.finish(Outcome::success("edited"));
    world.asked().await.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    assert_eq!(world.edit.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_without_a_review_needs_approval() {
    let mut world = World::new();
    world.review = ReviewMode::Auto;
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "edit", "{}")]);
    let review = world.asked().await;
    review.say("I am not sure");
    review.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("<ask>").await;
    assert!(watcher.story().ends_with("<review><reviewed><ask>"), "{}", watcher.story());
}
