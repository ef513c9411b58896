//! Taking a session away: what runs ends first, then nobody finds it any more.

use quintet_kernel::command::{Command, NewMessage, TurnStart};
use quintet_kernel::event::TurnOptions;
use quintet_kernel::message::{Part, Role};
use quintet_kernel::port::{Error, Sessions};
use quintet_kernel::tool::{Ending, Outcome};
use quintet_kernel::{Cursor, SessionId};

use crate::world::{Client, World, waits, within};

fn gone<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::NotFound(_)))
}

fn next(text: &str) -> Command {
    let (role, parts) = (Role::User, vec![Part::Text(text.into())]);
    Command::AddMessage(Box::new(NewMessage::new(
        role,
        parts,
        TurnStart::Queued,
        TurnOptions::default(),
    )))
}

#[tokio::test(start_paused = true)]
async fn a_session_at_rest_is_gone_for_everybody() {
    let world = World::new();
    let runtime = world.start();
    let (session, other) = (runtime.begin().await, runtime.begin().await);
    let mut follow = runtime.follow(&session, Cursor::START).await.unwrap();
    within(follow.next()).await.unwrap();
    within(runtime.remove(&session)).await.unwrap();
    assert!(gone(within(follow.next()).await));
    assert!(gone(within(runtime.view(&session)).await));
    assert!(gone(runtime.label(&session, "a").await));
    assert!(gone(runtime.follow(&session, Cursor::START).await));
    assert!(gone(within(runtime.remove(&session)).await));
    let left: Vec<SessionId> =
        runtime.list(9).await.unwrap().into_iter().map(|summary| summary.id).collect();
    assert_eq!(left, [other]);
}

#[tokio::test(start_paused = true)]
async fn what_runs_is_ended_first_and_what_waits_never_begins() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.submit(&session, next("one")).await.unwrap();
    runtime.submit(&session, next("two")).await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    let mut removed = Box::pin(runtime.remove(&session));
    assert!(waits(&mut removed).await);
    within(job.stopped()).await;
    assert!(gone(runtime.label(&session, "a").await));
    job.finish(Outcome::ended(Ending::Cancelled, "stopped"));
    within(removed).await.unwrap();
    assert!(gone(within(runtime.view(&session)).await));
    assert_eq!(world.names_of(&session).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_in_line_begins_when_the_one_before_it_is_over() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.submit(&session, next("one")).await.unwrap();
    runtime.submit(&session, next("two")).await.unwrap();
    world.asked().await.finish();
    let asked = world.asked().await;
    asked.say("second");
    asked.finish();
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    watcher.until("second<answered><done>").await;
}
