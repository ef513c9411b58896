//! Tests that the facts of a summary are saved to memory exactly once.

use std::sync::Arc;

use quintet_kernel::memory::MemoryError;
use quintet_kernel::port::Sessions;
use quintet_kernel::{Command, Cursor, SessionId};
use quintet_runtime::Runtime;
use quintet_testkit::memory_notes::MemoryNotes;

use crate::crash::until_crash;
use crate::gated_store::Gate;
use crate::world::{Client, World, settle, within};

const TODAY: &str = "memory/2025-01-01.md";

fn with_memory() -> World {
    World { memory: Some(Arc::new(MemoryNotes::new())), ..World::new() }
}

/// A session whose history is being summarized.
async fn compacting(world: &World, runtime: &Runtime) -> SessionId {
    let session = runtime.begin().await;
    runtime.say(&session, "I like tabs").await.unwrap();
    world.asked().await.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
    within(runtime.submit(&session, Command::Compact)).await.unwrap();
    session
}

async fn summarize(world: &World) {
    let asked = world.asked().await;
    let question = format!("{:?}", asked.prompt.messages.last().unwrap());
    assert!(question.contains("REMEMBER:"), "{question}");
    asked.say("They talked.\n\nREMEMBER:\n- likes tabs\n- hates noise");
    asked.finish();
}

#[tokio::test(start_paused = true)]
async fn facts_are_written_and_the_summary_is_without_them() {
    let world = with_memory();
    let runtime = world.start();
    let session = compacting(&world, &runtime).await;
    summarize(&world).await;
    runtime.watch(&session, Cursor::START).await.until("<compacted><saved>").await;
    let memory = world.memory.as_ref().unwrap();
    assert_eq!(memory.lines(TODAY), ["- likes tabs", "- hates noise"]);
    let state = runtime.state(&session).await;
    assert_eq!(state.compaction.summary.as_ref().unwrap().text, "They talked.");
    assert!(state.saving.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_before_it_is_durable() {
    let world = with_memory();
    let runtime = world.start();
    let session = compacting(&world, &runtime).await;
    world.journal.set(Gate::Shut);
    summarize(&world).await;
    settle().await;
    let memory = world.memory.as_ref().unwrap();
    assert!(memory.lines(TODAY).is_empty());
    world.journal.set(Gate::Open);
    runtime.watch(&session, Cursor::START).await.until("<saved>").await;
    assert_eq!(memory.lines(TODAY).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_memory_failure_is_recorded_and_ends_there() {
    let world = with_memory();
    world.memory.as_ref().unwrap().fail_with(MemoryError::Storage("the disk is full".into()));
    let runtime = world.start();
    let session = compacting(&world, &runtime).await;
    summarize(&world).await;
    runtime.watch(&session, Cursor::START).await.until("<compacted><not saved>").await;
    runtime.say(&session, "go on").await.unwrap();
    world.asked().await.finish();
}

/// The daemon dies after the facts were saved and before that was recorded.
#[test]
fn after_a_crash_facts_are_saved_once() {
    let mut world = with_memory();
    let session = until_crash(async {
        let runtime = world.start();
        let session = compacting(&world, &runtime).await;
        world.journal.end_after(world.journal.appends() + 1);
        summarize(&world).await;
        runtime.watch(&session, Cursor::START).await.until("<compacted>").await;
        settle().await;
        session
    });
    assert_eq!(world.memory.as_ref().unwrap().lines(TODAY).len(), 2);
    world.reopen();
    until_crash(async {
        let runtime = world.start();
        assert_eq!(runtime.recover().await.unwrap(), 1);
        runtime.watch(&session, Cursor::START).await.until("<compacted><saved>").await;
    });
    assert_eq!(world.memory.as_ref().unwrap().lines(TODAY).len(), 2);
    world.reopen();
    assert_eq!(until_crash(async { world.start().recover().await.unwrap() }), 0);
}
