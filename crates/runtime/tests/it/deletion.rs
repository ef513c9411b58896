//! Tests of deleting sessions: running work ends first, then the session is not found.

use quintet_kernel::command::{Command, NewMessage, TurnStart};
use quintet_kernel::event::TurnOptions;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::tool::{Ending, Outcome};
use quintet_kernel::{Cursor, SessionId};

use crate::world::{Client, World, waits, within};

fn is_not_found<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::NotFound(_)))
}

fn queued(text: &str) -> Command {
    let (role, parts) = (Role::User, vec![Part::Text(text.into())]);
    Command::AddMessage(Box::new(NewMessage::new(
        role,
        parts,
        TurnStart::Queued,
        TurnOptions::default(),
    )))
}

#[tokio::test(start_paused = true)]
async fn a_deleted_idle_session_is_not_found() {
    let world = World::new();
    let runtime = world.start();
    let (session, other) = (runtime.begin().await, runtime.begin().await);
    let mut follow = runtime.follow(&session, Cursor::START).await.unwrap();
    within(follow.next()).await.unwrap();
    within(runtime.remove(&session)).await.unwrap();
    assert!(is_not_found(within(follow.next()).await));
    assert!(is_not_found(within(runtime.view(&session)).await));
    assert!(is_not_found(runtime.label(&session, "a").await));
    assert!(is_not_found(runtime.follow(&session, Cursor::START).await));
    assert!(is_not_found(within(runtime.remove(&session)).await));
    let left: Vec<SessionId> =
        runtime.list(9).await.unwrap().into_iter().map(|summary| summary.id).collect();
    assert_eq!(left, [other]);
}

#[tokio::test(start_paused = true)]
async fn running_work_ends_first_and_queued_turns_never_start() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.submit(&session, queued("one")).await.unwrap();
    runtime.submit(&session, queued("two")).await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let mut removed = Box::pin(runtime.remove(&session));
    assert!(waits(&mut removed).await);
    within(job.stopped()).await;
    assert!(is_not_found(runtime.label(&session, "a").await));
    job.finish(Outcome::ended(Ending::Cancelled, "stopped"));
    within(removed).await.unwrap();
    assert!(is_not_found(within(runtime.view(&session)).await));
    assert_eq!(world.names_of(&session).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_queued_turn_starts_after_the_one_before_it() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.submit(&session, queued("one")).await.unwrap();
    runtime.submit(&session, queued("two")).await.unwrap();
    world.asked().await.finish();
    let asked = world.asked().await;
    asked.say("second");
    asked.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("second<answered><done>").await;
}
