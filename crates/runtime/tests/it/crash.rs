//! Tests of crashes: the process dies and another one continues.

use quintet_kernel::model::PromptMessage;
use quintet_kernel::tool::Outcome;
use quintet_kernel::{Cursor, SessionId};
use quintet_testkit::scripted_model::ScriptedCall;

use crate::world::{Client, World, settle, within};

/// Runs a future in a daemon that ends without warning afterwards.
pub(crate) fn until_crash<T>(future: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let tokio = builder.enable_time().start_paused(true).build().unwrap();
    let result = tokio.block_on(future);
    tokio.shutdown_background();
    result
}

/// The results of its calls that the model reads.
pub(crate) fn results<'a>(asked: &'a ScriptedCall) -> Vec<&'a str> {
    let result = |message: &'a PromptMessage| match message {
        PromptMessage::Result { text, .. } => Some(text.as_str()),
        PromptMessage::System(_) | PromptMessage::User(_) | PromptMessage::Assistant { .. } => None,
    };
    asked.prompt.messages.iter().map(|message| &**message).filter_map(result).collect()
}

fn count(names: &[&str], name: &str) -> usize {
    names.iter().filter(|other| **other == name).count()
}

#[test]
fn shown_text_is_kept_and_the_model_is_called_again() {
    let mut world = World::new();
    let (session, at) = until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        let asked = world.asked().await;
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        asked.think("hm ");
        asked.say("part");
        watcher.until("(hm )part").await;
        tokio::time::sleep(world.timing.flush_after * 2).await;
        asked.say("ial");
        watcher.until("partial").await;
        (session, watcher.position())
    });
    let durable = until_crash(world.names_of(&session));
    assert_eq!(count(&durable, "text"), 2, "{durable:?}");

    world.reopen();
    until_crash(async {
        let runtime = world.start();
        assert_eq!(runtime.recover().await.unwrap(), 1);
        let asked = world.asked().await;
        assert_eq!(asked.prompt.messages.len(), 1, "{:?}", asked.prompt.messages);
        asked.say("whole");
        asked.finish();
        let mut watcher = runtime.watch(&session, Cursor::START).await;
        watcher.turn_over().await;
        let again = "<interrupted><resumed><step>whole<answered><done>";
        assert_eq!(watcher.story(), format!("<created><said><turn><step>(hm )partial{again}"));
        let mut resumed = runtime.watch(&session, at).await;
        resumed.turn_over().await;
        assert_eq!(resumed.story(), again);
    });
    assert_eq!(world.model.count(), 2);
}

#[test]
fn a_started_command_is_reported_and_not_run_again() {
    let mut world = World::new();
    let session = until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        world.asked().await.call(&[("c1", "shell", "{}")]);
        within(world.shell.started()).await;
        session
    });
    world.reopen();
    until_crash(async {
        let runtime = world.start();
        runtime.recover().await.unwrap();
        let asked = world.asked().await;
        let expected =
            "the daemon stopped while this call was running; how far it got is not known";
        assert_eq!(results(&asked), [expected]);
        asked.finish();
        runtime.watch(&session, Cursor::START).await.turn_over().await;
    });
    assert_eq!(world.shell.count(), 1);
}

#[test]
fn a_read_is_repeated() {
    let mut world = World::new();
    let session = until_crash(async {
        let runtime = world.start();
        let session = runtime.begin().await;
        runtime.say(&session, "go").await.unwrap();
        world.asked().await.call(&[("c1", "look", "{}")]);
        within(world.look.started()).await;
        session
    });
    world.reopen();
    until_crash(async {
        let runtime = world.start();
        runtime.recover().await.unwrap();
        within(world.look.started()).await.finish(Outcome::success("there"));
        let asked = world.asked().await;
        assert_eq!(results(&asked), ["there"]);
        asked.finish();
        runtime.watch(&session, Cursor::START).await.turn_over().await;
    });
    assert_eq!(world.look.count(), 2);
    let names = until_crash(world.names_of(&session));
    assert_eq!((count(&names, "call"), count(&names, "result")), (1, 1));
}

/// Plays the model and the tool until the turn ends or nothing happens.
async fn play(world: &World, watcher: &mut crate::watcher::Watcher) {
    let acting = async {
        loop {
            tokio::select! {
                asked = world.model.asked() => if results(&asked).is_empty() {
                    asked.say("I will look. ");
                    asked.call(&[("c1", "shell", "{}")]);
                } else {
                    asked.say("Done.");
                    asked.finish();
                },
                job = world.shell.started() => job.finish(Outcome::success("fine")),
            }
        }
    };
    tokio::select! {
        () = acting => {}
        () = watcher.turn_over() => {}
        () = tokio::time::sleep(std::time::Duration::from_secs(20)) => {}
    }
}

/// Whatever append the daemon dies at: the turn ends once, and the command runs at most once.
#[test]
fn a_crash_at_any_append() {
    for appends in 2..12 {
        let mut world = World::new();
        let session: SessionId = until_crash(async {
            let runtime = world.start();
            let session = runtime.begin().await;
            world.journal.end_after(appends);
            let mut watcher = runtime.watch(&session, Cursor::START).await;
            tokio::select! {
                said = runtime.say(&session, "go") => {
                    said.unwrap();
                    play(&world, &mut watcher).await;
                }
                () = settle() => {}
            }
            session
        });
        world.reopen();
        until_crash(async {
            let runtime = world.start();
            let mut watcher = runtime.watch(&session, Cursor::START).await;
            if runtime.recover().await.unwrap() > 0 {
                play(&world, &mut watcher).await;
            }
        });
        let names = until_crash(world.names_of(&session));
        assert_eq!(count(&names, "done"), 1, "after {appends}: {names:?}");
        assert_eq!(names.last(), Some(&"done"), "after {appends}: {names:?}");
        assert_eq!(count(&names, "call"), 1, "after {appends}: {names:?}");
        assert!(world.shell.count() <= 1, "after {appends}: {names:?}");
    }
}
