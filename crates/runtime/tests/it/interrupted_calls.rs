//! Text is cut once: every follower gets the same pieces at the same positions, however fast it reads,
//! whenever it comes, and also after a crash.

use proptest::prelude::*;
use quintet_kernel::port::Sessions;
use quintet_kernel::{Cursor, Item, SessionId};
use quintet_runtime::Runtime;
use quintet_testkit::scripted_model::ScriptedCall;

use crate::crash::life;
use crate::gated_store::Gate;
use crate::watcher::Watcher;
use crate::world::{Client, World, label, settle, waits};

/// Something that happens while a model writes.
#[derive(Clone, Debug)]
enum Act {
    Say(String),
    Think(String),
    /// Text so far is handed to the journal.
    Flush,
    /// Another event comes between the text.
    Label,
    /// Appends wait from here on.
    Shut,
    /// Appends are kept, but not acknowledged, from here on.
    Late,
    Open,
    /// The follower that seldom reads does so.
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

/// The pieces of text that a follower got, with their positions.
fn cuts(items: &[Item]) -> Vec<String> {
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

/// Cuts without their positions.
fn bare(cuts: &[String]) -> Vec<&str> {
    cuts.iter().filter_map(|cut| Some(cut.split_once(' ')?.1)).collect()
}

struct Scene {
    runtime: Runtime,
    session: SessionId,
    asked: ScriptedCall,
    /// Reads after everything that happens.
    quick: Watcher,
    slow: Watcher,
}

async fn begin(world: &World) -> Scene {
    let runtime = world.start();
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    let quick = runtime.watch(&session, Cursor::START).await;
    let slow = runtime.watch(&session, Cursor::START).await;
    Scene { runtime, session, asked, quick, slow }
}

async fn play(world: &World, scene: &mut Scene, acts: &[Act]) {
    let mut held = false;
    for act in acts {
        match act {
            Act::Say(text) => scene.asked.say(text),
            Act::Think(text) => scene.asked.think(text),
            Act::Flush => tokio::time::sleep(world.timing.flush_after * 2).await,
            Act::Label => {
                let mut labelled = scene.runtime.submit(&scene.session, label("between"));
                waits(&mut labelled).await;
            }
            // Appends that wait must not be overtaken by such as do not.
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
            Act::Look => scene.slow.peek().await,
        }
        settle().await;
        scene.quick.peek().await;
    }
}

/// Followers from every position that a follower has been at get the rest, cut alike.
async fn resume(scene: &Scene, all: &[String]) {
    for (n, item) in scene.quick.items.iter().enumerate() {
        let Item::Text { position, .. } = item else { continue };
        let known = cuts(&scene.quick.items[..=n]).len();
        let mut back = scene.runtime.watch(&scene.session, *position).await;
        back.turn_over().await;
        assert_eq!(cuts(&back.items), all[known..], "resumed at {position}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn all_followers_get_the_same_pieces(acts in acts()) {
        let world = World::new();
        life(async {
            let mut scene = begin(&world).await;
            play(&world, &mut scene, &acts).await;
            world.journal.set(Gate::Open);
            scene.asked.finish();
            scene.quick.turn_over().await;
            scene.slow.turn_over().await;
            let mut late = scene.runtime.watch(&scene.session, Cursor::START).await;
            late.turn_over().await;
            let all = cuts(&scene.quick.items);
            assert_eq!(bare(&all), written(&acts));
            assert_eq!(cuts(&scene.slow.items), all);
            assert_eq!(cuts(&late.items), all);
            resume(&scene, &all).await;
        });
    }

    #[test]
    fn a_crash_changes_no_piece_that_was_shown(acts in acts()) {
        let mut world = World::new();
        let (session, quick, slow) = life(async {
            let mut scene = begin(&world).await;
            play(&world, &mut scene, &acts).await;
            (scene.session, cuts(&scene.quick.items), cuts(&scene.slow.items))
        });
        world.reopen();
        let late = life(async {
            let runtime = world.start();
            runtime.recover().await.unwrap();
            world.asked().await.finish();
            let mut late = runtime.watch(&session, Cursor::START).await;
            late.turn_over().await;
            cuts(&late.items)
        });
        for shown in [quick, slow] {
            prop_assert_eq!(&late[..shown.len()], &shown[..]);
        }
        prop_assert_eq!(bare(&late), &written(&acts)[..late.len()]);
    }
}
