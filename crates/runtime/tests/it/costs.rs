//! Measurements to be read by people: `cargo test -p quintet-runtime --test it measure -- --ignored
//! --nocapture`.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::Sessions;
use quintet_kernel::{Cursor, prompt};
use quintet_runtime::{Runtime, RuntimeDeps};
use quintet_stores::DataDir;
use tokio::time::Instant;

use crate::world::{Client, World, origin};

/// The memory of this process, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// The duration of a turn by the number of earlier turns, and how much of it is prompt assembly and
/// copying the state.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "prints numbers"]
async fn turns_by_history() {
    let world = World::new();
    let runtime = world.start();
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    println!("turns   turn us   prompt us   copy us");
    for round in 0..=20 {
        let (begun, turns) = (Instant::now(), 50);
        for _ in 0..turns {
            runtime.say(&session, "a question of some length, as people ask them").await.unwrap();
            let asked = world.asked().await;
            asked.say("an answer of about the same length, as models give them");
            asked.finish();
            watcher.items.clear();
            watcher.turn_over().await;
        }
        let turn = begun.elapsed().as_micros() / turns;
        let state = runtime.state(&session).await;
        let begun = Instant::now();
        let assembled = prompt::assemble(&state);
        let (assembling, copying) = (begun.elapsed(), Instant::now());
        let copy = quintet_kernel::State::clone(&state);
        let copying = copying.elapsed();
        assert_eq!(assembled.messages.len(), copy.messages.len());
        println!(
            "{:5} {turn:9} {:11} {:9}",
            (round + 1) * turns,
            assembling.as_micros(),
            copying.as_micros()
        );
    }
}

/// The time from a message to the model call, its acknowledgement and the first text, with a model
/// that answers at once; and the time to append one event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints numbers"]
async fn first_text() {
    let dir = tempfile::tempdir_in(".").unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let world = World::new();
    let runtime = on_disk(&world, &data);
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    let mut taken: [Vec<u128>; 4] = Default::default();
    for n in 0..300 {
        let begun = Instant::now();
        runtime.label(&session, &n.to_string()).await.unwrap();
        taken[0].push(begun.elapsed().as_micros());
        watcher.until("<labelled>").await;
        let begun = Instant::now();
        let acknowledged = async {
            runtime.say(&session, "go").await.unwrap();
            begun.elapsed().as_micros()
        };
        let asked = async {
            let asked = world.asked().await;
            let after = begun.elapsed().as_micros();
            asked.say("text");
            (after, asked)
        };
        let shown = async {
            watcher.until("text").await;
            begun.elapsed().as_micros()
        };
        let (acknowledged, (asked, question), shown) = tokio::join!(acknowledged, asked, shown);
        taken[1].push(asked);
        taken[2].push(acknowledged);
        taken[3].push(shown);
        question.finish();
        watcher.turn_over().await;
        watcher.items.clear();
    }
    for (name, mut taken) in ["one event", "asked", "acknowledged", "first text"].iter().zip(taken)
    {
        taken.sort_unstable();
        println!("{name}: {} us, 90 % within {} us", taken[150], taken[270]);
    }
}

fn on_disk(world: &World, data: &DataDir) -> Runtime {
    let journal = Arc::new(data.sqlite().unwrap());
    let drafts = Arc::new(data.drafts(None).unwrap());
    Runtime::new(RuntimeDeps {
        leases: journal.clone(),
        session_index: journal.clone(),
        journal,
        drafts,
        ..world.deps()
    })
}

/// The memory after many sessions were created and became idle.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints numbers"]
async fn memory_by_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(dir.path()).unwrap();
    let world = World::new();
    let runtime = on_disk(&world, &data);
    println!("at first {} KiB", resident());
    for round in 1..=10 {
        for _ in 0..1000 {
            runtime.create(origin()).await.unwrap();
        }
        println!("{:6} sessions, {} awake: {} KiB", round * 1000, runtime.awake(), resident());
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    println!("left alone, {} awake: {} KiB", runtime.awake(), resident());
}
