//! Tests that text is split once: every follower receives the same pieces at the same positions,
//! whenever and however fast it reads, also after a crash.

use proptest::prelude::*;
use quintet_kernel::port::Sessions;
use quintet_kernel::{Cursor, Item, SessionId};
use quintet_runtime::Runtime;
use quintet_testkit::scripted_model::ScriptedCall;

use crate::crash::until_crash;
use crate::gated_store::Gate;
use crate::watcher::Watcher;
use crate::world::{Client, World, label, settle, waits};

/// A step of a random test while a model writes.
#[derive(Clone, Debug)]
enum Act {
    Say(String),
    Think(String),
    /// Buffered text is appended to the journal.
    Flush,
    /// Another event is appended between the text.
    Label,
    /// Appends wait from here on.
    Shut,
    /// Appends are stored but not acknowledged from here on.
    Late,
    Open,
    /// The slow follower reads.
    Look,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let piece = "[aé€😀]{1,4}";
    let act = prop_oneof![
        6 => piece.prop_map(Act::Say),
        2 => piece.prop_map(Act::Think),
        2 => Just(Act::Flush),
        1 => Just(Act::Label),
        1 => Just(Act::Shut),
        1 => Just(Act::Late),
        2 => Just(Act::Open),
        2 => Just(Act::Look),
    ];
    prop::collection::vec(act, 0..24)
}

/// The pieces of text that a follower received, with their positions.
fn pieces(items: &[Item]) -> Vec<String> {
    let cut = |item: &Item| match item {
        Item::Text { position, channel, text, .. } => {
            Some(format!("{position} {channel:?} {text}"))
        }
        Item::Event(_) | Item::Progress { .. } => None,
    };
    items.iter().filter_map(cut).collect()
}

/// The pieces as the model wrote them.
fn written(acts: &[Act]) -> Vec<String> {
    let piece = |act: &Act| match act {
        Act::Say(text) => Some(format!("Text {text}")),
        Act::Think(text) => Some(format!("Thought {text}")),
        Act::Flush | Act::Label | Act::Shut | Act::Late | Act::Open | Act::Look => None,
    };
    acts.iter().filter_map(piece).collect()
}

/// Pieces without their positions.
fn without_positions(pieces: &[String]) -> Vec<&str> {
    pieces.iter().filter_map(|cut| Some(cut.split_once(' ')?.1)).collect()
}

struct Followed {
    runtime: Runtime,
    session: SessionId,
    asked: ScriptedCall,
    /// A follower that reads after every step.
    quick: Watcher,
    slow: Watcher,
}

async fn begin(world: &World) -> Followed {
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    let quick = runtime.watch(&session, Cursor::START).await;
    let slow = runtime.watch(&session, Cursor::START).await;
    Followed { runtime, session, asked, quick, slow }
}

async fn play(world: &World, followed: &mut Followed, acts: &[Act]) {
    let mut held = false;
    for act in acts {
        match act {
            Act::Say(text) => followed.asked.say(text),
            Act::Think(text) => followed.asked.think(text),
            Act::Flush => tokio::time::sleep(world.timing.flush_after * 2).await,
            Act::Label => {
                let mut labelled = followed.runtime.submit(&followed.session, label("between"));
                waits(&mut labelled).await;
            }
            // Waiting appends must not be overtaken.
            Act::Shut | Act::Late if held => {}
            Act::Shut => {
                held = true;
                world.journal.set(Gate::Shut);
            }
            Act::Late => {
                held = true;
                world.journal.set(Gate::Late);
            }
            Act::Open => {
                held = false;
                world.journal.set(Gate::Open);
            }
            Act::Look => followed.slow.peek().await,
        }
        settle().await;
        followed.quick.peek().await;
    }
}

/// Followers that resume at any earlier position receive the rest in the same pieces.
async fn resume(followed: &Followed, all: &[String]) {
    for (n, item) in followed.quick.items.iter().enumerate() {
        let Item::Text { position, .. } = item else { continue };
        let known = pieces(&followed.quick.items[..=n]).len();
        let mut back = followed.runtime.watch(&followed.session, *position).await;
        back.turn_over().await;
        assert_eq!(pieces(&back.items), all[known..], "resumed at {position}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn all_followers_get_the_same_pieces(acts in acts()) {
        let world = World::new();
        until_crash(async {
            let mut followed = begin(&world).await;
            play(&world, &mut followed, &acts).await;
            world.journal.set(Gate::Open);
            followed.asked.finish();
            followed.quick.turn_over().await;
            followed.slow.turn_over().await;
            let mut late = followed.runtime.watch(&followed.session, Cursor::START).await;
            late.turn_over().await;
            let all = pieces(&followed.quick.items);
            assert_eq!(without_positions(&all), written(&acts));
            assert_eq!(pieces(&followed.slow.items), all);
            assert_eq!(pieces(&late.items), all);
            resume(&followed, &all).await;
        });
    }

    #[test]
    fn a_crash_changes_no_piece_that_was_shown(acts in acts()) {
        let mut world = World::new();
        let (session, quick, slow) = until_crash(async {
            let mut followed = begin(&world).await;
            play(&world, &mut followed, &acts).await;
            (followed.session, pieces(&followed.quick.items), pieces(&followed.slow.items))
        });
        world.reopen();
        let late = until_crash(async {
            let runtime = world.start();
            runtime.recover().await.unwrap();
            world.asked().await.finish();
            let mut late = runtime.watch(&session, Cursor::START).await;
            late.turn_over().await;
            pieces(&late.items)
        });
        for shown in [quick, slow] {
            prop_assert_eq!(&late[..shown.len()], &shown[..]);
        }
        prop_assert_eq!(without_positions(&late), &written(&acts)[..late.len()]);
    }
}
