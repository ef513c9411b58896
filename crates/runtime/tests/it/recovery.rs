//! Tests of recovery at start, by policy.

use std::time::Duration;

use quintet_kernel::policy::Recovery;
use quintet_kernel::port::{SessionInspection, Sessions};
use quintet_kernel::session_summary::Status;
use quintet_kernel::tool::{Outcome, ToolKind};
use quintet_kernel::{Command, Cursor, SessionId};

use crate::crash::{results, until_crash};
use crate::world::{Client, World, settle, within};

/// A session whose daemon crashed while the model was writing.
fn crashed_session(world: &World) -> SessionId {
    until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        world.asked().await.say("part");
        runtime.watch(&session, Cursor::START).await.until("part").await;
        session
    })
}

#[test]
fn approvals_survive() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let session = until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        world.asked().await.call(&[("c1", "shell", r#"{"a":1}"#)]);
        runtime.watch(&session, Cursor::START).await.until("<ask>").await;
        session
    });
    for recovery in [Recovery::Leave, Recovery::Ask, Recovery::Continue] {
        world.reopen();
        world.recovery = recovery;
        until_crash(async {
            let runtime = world.start();
            assert_eq!(runtime.recover().await.unwrap(), 1);
            assert_eq!(runtime.state(&session).await.status, Status::WaitingApproval);
            settle().await;
        });
    }
    world.reopen();
    until_crash(async {
        let runtime = world.start();
        runtime.recover().await.unwrap();
        runtime.allow(&session, "c1").await.unwrap();
        let job = within(world.shell.started()).await;
        assert_eq!(job.call.input["a"], 1);
        job.finish(Outcome::success("fine"));
        let asked = world.asked().await;
        assert_eq!(results(&asked), ["fine"]);
        asked.finish();
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        watcher.turn_over().await;
        let expected = "<created><said><turn><step><answered><ask><word><call><result><step>";
        assert_eq!(watcher.story(), format!("{expected}<answered><done>"));
    });
    assert_eq!(world.shell.count(), 1);
}

#[test]
fn recovery_ask_holds_the_turn_until_a_client_decides() {
    let mut world = World::new();
    world.recovery = Recovery::Ask;
    let session = crashed_session(&world);
    // Repeated starts do not repeat the request.
    for _ in 0..3 {
        world.reopen();
        until_crash(async {
            let runtime = world.start();
            assert_eq!(runtime.recover().await.unwrap(), 1);
            runtime.watch(&session, Cursor::START).await.until("part<interrupted><held>").await;
            tokio::time::sleep(world.timing.hibernate_after * 2).await;
            assert_eq!(runtime.awake(), 0);
            assert_eq!(world.model.count(), 1);
        });
    }
    until_crash(async {
        let runtime = world.start();
        let turn = runtime.state(&session).await.turns[0].id.clone();
        within(runtime.submit(&session, Command::StartTurn { turn })).await.unwrap();
        world.asked().await.finish();
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        watcher.turn_over().await;
        assert!(watcher.story().ends_with("<held><released><step><answered><done>"));
    });
}

#[test]
fn recovery_leave_ends_the_turn() {
    let mut world = World::new();
    world.recovery = Recovery::Leave;
    let session = crashed_session(&world);
    world.reopen();
    until_crash(async {
        let runtime = world.start();
        assert_eq!(runtime.recover().await.unwrap(), 1);
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        watcher.turn_over().await;
        let expected = "<created><said><turn><step>part<interrupted><stop><failed>";
        assert_eq!(watcher.story(), expected);
    });
    world.reopen();
    until_crash(async {
        assert_eq!(world.start().recover().await.unwrap(), 0);
    });
    assert_eq!(world.model.count(), 1);
}

#[test]
fn a_cancelled_turn_ends_at_the_next_start() {
    let mut world = World::new();
    let session = until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        world.asked().await.call(&[("c1", "shell", "{}")]);
        let _job = within(world.shell.started()).await;
        let mut cancelled = runtime.submit(&session, Command::Cancel { reason: None });
        assert!(crate::world::waits(&mut cancelled).await);
        runtime.watch(&session, Cursor::START).await.until("<stop>").await;
        session
    });
    world.reopen();
    until_crash(async {
        let runtime = world.start();
        assert_eq!(runtime.recover().await.unwrap(), 1);
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        watcher.turn_over().await;
        assert!(watcher.story().ends_with("<call><stop><result><cancelled>"));
    });
    assert_eq!((world.shell.count(), world.model.count()), (1, 1));
}

#[test]
fn shown_text_is_kept_even_if_the_turn_has_timed_out() {
    let mut world = World::new();
    world.time = Duration::from_secs(60);
    let session = until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        let asked = world.asked().await;
        asked.think("hm");
        asked.say("part");
        asked.say("ial");
        runtime.watch(&session, Cursor::START).await.until("(hm)partial").await;
        session
    });
    world.reopen();
    until_crash(async {
        tokio::time::sleep(Duration::from_secs(3600)).await;
        let runtime = world.start();
        runtime.recover().await.unwrap();
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        watcher.turn_over().await;
        assert!(watcher.story().starts_with("<created><said><turn><step>(hm)partial<"));
        assert!(watcher.story().ends_with("<failed>"), "{}", watcher.story());
    });
}

/// A session whose daemon crashed while a call of this tool ran, which named `a` and `b` and
/// changed `a`.
fn crashed_during_change(world: &World, tool: &str) -> SessionId {
    world.folder.write("a", "old");
    world.folder.write("b", "same");
    until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        world.asked().await.call(&[("c1", tool, "{}")]);
        let puppet = if tool == "edit" { &world.edit } else { &world.shell };
        let job = within(puppet.started()).await;
        if tool == "edit" {
            world.folder.name(&job.call.turn, &job.call.call, &["a", "b"]);
        }
        world.folder.write("a", "new");
        session
    })
}

#[test]
fn an_interrupted_change_can_be_reverted() {
    let mut world = World::new();
    let session = crashed_during_change(&world, "edit");
    world.reopen();
    until_crash(async {
        let runtime = world.start();
        assert_eq!(runtime.recover().await.unwrap(), 1);
        let asked = world.asked().await;
        assert!(results(&asked)[0].ends_with("; of the files it named, changed: a"));
        asked.finish();
        runtime.watch(&session, Cursor::START).await.turn_over().await;
        within(async {
            while world.folder.remembers() > 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        let turn = runtime.state(&session).await.turns[0].id.clone();
        let set = within(runtime.turn_changes(&session, &turn)).await.unwrap();
        assert_eq!(set.diff, "a: \"old\" -> \"new\"\n");
        assert!(set.unrecorded.is_empty());
        within(runtime.submit(&session, Command::Revert { turn })).await.unwrap();
        assert_eq!(world.folder.read("a").as_deref(), Some("old"));
    });
}

#[test]
fn the_changes_of_an_interrupted_command_are_unrecorded() {
    let mut world = World::new();
    let session = crashed_during_change(&world, "shell");
    world.reopen();
    until_crash(async {
        let runtime = world.start();
        assert_eq!(runtime.recover().await.unwrap(), 1);
        world.asked().await.finish();
        runtime.watch(&session, Cursor::START).await.turn_over().await;
        let turn = runtime.state(&session).await.turns[0].id.clone();
        let set = within(runtime.turn_changes(&session, &turn)).await.unwrap();
        let [gap] = &set.unrecorded[..] else { panic!("{:?}", set.unrecorded) };
        assert_eq!((gap.path.as_str(), gap.paths), ("", None));
        assert_eq!(gap.reason, "the daemon stopped while shell ran");
    });
}
