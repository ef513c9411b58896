//! What the daemon itself adds to the time of a turn. The clock stands still unless a test moves it,
//! so that every figure is exact.

use std::time::Duration;

use quintet_kernel::Cursor;
use quintet_kernel::port::{Sessions, TurnOverhead, TurnOverheads};
use quintet_kernel::tool::{Outcome, ToolKind};
use quintet_runtime::Runtime;

use crate::gated_store::Gate;
use crate::world::{Client, World, say, settle, waits, within};

/// Time that passes while the journal is not durable, which is the daemon's time.
const SYNC: Duration = Duration::from_millis(40);
/// Time in which a model writes, a tool runs or a person thinks.
const ELSEWHERE: Duration = Duration::from_secs(60);
/// `settle` moves the clock a little.
const SETTLING: Duration = Duration::from_millis(20);

#[track_caller]
fn assert_about(figure: Duration, expected: Duration) {
    let is_about = figure >= expected && figure <= expected + SETTLING;
    assert!(is_about, "{figure:?} is not about {expected:?}");
}

/// Moves the clock while appends wait for the disk.
async fn sync_slowly(world: &World) {
    settle().await;
    tokio::time::sleep(SYNC).await;
    world.journal.set(Gate::Open);
    settle().await;
}

fn only_turn(runtime: &Runtime) -> TurnOverhead {
    let turns = runtime.recent_turns();
    assert_eq!(turns.len(), 1, "{turns:?}");
    turns[0]
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_model_is_not_the_daemons() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "hello").await.unwrap();
    let asked = world.asked().await;
    tokio::time::sleep(ELSEWHERE).await;
    asked.say("Hi");
    tokio::time::sleep(ELSEWHERE).await;
    world.journal.set(Gate::Shut);
    asked.finish();
    sync_slowly(&world).await;

    let turn = only_turn(&runtime);
    assert_about(turn.asked, Duration::ZERO);
    assert_about(turn.first_output.unwrap(), Duration::ZERO);
    assert_eq!(turn.tool_round_trip, None);
    assert_about(turn.total, SYNC);
    assert_about(turn.models_and_tools, 2 * ELSEWHERE);
}

#[tokio::test(start_paused = true)]
async fn the_first_text_waits_until_its_turn_is_durable() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    world.journal.set(Gate::Shut);
    let mut submitted = runtime.submit(&session, say("hello"));
    assert!(waits(&mut submitted).await);
    let asked = world.asked().await;
    asked.say("Hi");
    sync_slowly(&world).await;
    within(submitted).await.unwrap();
    asked.finish();
    settle().await;

    let turn = only_turn(&runtime);
    assert_about(turn.first_output.unwrap(), SYNC);
    // The model wrote meanwhile.
    assert_about(turn.total, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_waits_for_its_session_has_arrived() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    within(runtime.close(ELSEWHERE)).await;
    let runtime = world.start();
    world.journal.hold_reads(true);
    let mut submitted = runtime.submit(&session, say("hello"));
    assert!(waits(&mut submitted).await);
    settle().await;
    tokio::time::sleep(SYNC).await;
    world.journal.hold_reads(false);
    within(submitted).await.unwrap();
    world.asked().await.finish();
    settle().await;

    let turn = only_turn(&runtime);
    assert_about(turn.asked, SYNC);
    assert_about(turn.total, SYNC);
    assert_eq!(turn.first_output, None);
}

#[tokio::test(start_paused = true)]
async fn tools_and_people_take_their_own_time() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    runtime.watch(&session, Cursor::START).await.until("<ask>").await;
    tokio::time::sleep(ELSEWHERE).await;

    world.journal.set(Gate::Shut);
    let (allowed, ()) = tokio::join!(runtime.allow(&session, "c1"), sync_slowly(&world));
    allowed.unwrap();
    let run = within(world.shell.started()).await;
    tokio::time::sleep(ELSEWHERE).await;
    run.finish(Outcome::success("done"));
    world.asked().await.finish();
    settle().await;

    let turn = only_turn(&runtime);
    assert_about(turn.tool_round_trip.unwrap(), SYNC);
    assert_about(turn.total, SYNC);
    assert_about(turn.models_and_tools, ELSEWHERE);
}

#[tokio::test(start_paused = true)]
async fn only_recent_turns_are_kept() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    for _ in 0..300 {
        runtime.say(&session, "hello").await.unwrap();
        world.asked().await.finish();
        settle().await;
    }
    let turns = runtime.recent_turns();
    assert_eq!(turns.len(), 256);
    assert!(turns.is_sorted_by_key(|turn| turn.ended));
}
