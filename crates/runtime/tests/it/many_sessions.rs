//! Tests of many concurrent sessions.

use quintet_kernel::Cursor;
use quintet_kernel::tool::Outcome;
use tokio::task::JoinSet;

use crate::world::{Client, FOREVER, World, within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_sessions_all_complete() {
    const SESSIONS: usize = 200;
    let world = World::new();
    let runtime = world.start();
    let (model, look) = (world.model.clone(), world.look.clone());
    let mut outside = JoinSet::new();
    outside.spawn(async move {
        loop {
            let asked = model.asked().await;
            let answered = crate::crash::results(&asked).len();
            for n in 0..20 {
                asked.say(&format!("{n} "));
                tokio::task::yield_now().await;
            }
            match answered {
                0 => asked.call(&[("c1", "look", "{}")]),
                _ => asked.finish(),
            }
        }
    });
    outside.spawn(async move {
        loop {
            look.started().await.finish(Outcome::success("fine"));
        }
    });
    let mut clients = JoinSet::new();
    for n in 0..SESSIONS {
        let runtime = runtime.clone();
        clients.spawn(async move {
            let session = runtime.begin().await;
            let mut watcher = runtime.watch(&session, Cursor::START).await;
            runtime.say(&session, &format!("question {n}")).await.unwrap();
            watcher.turn_over().await;
            let text: String = (0..20).map(|n| format!("{n} ")).collect();
            let acted = format!("<step>{text}<answered><call><result>");
            let expected = format!("<created><said><turn>{acted}<step>{text}<answered><done>");
            assert_eq!(watcher.story(), expected);
        });
    }
    within(async {
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
    })
    .await;
    assert_eq!((world.model.count(), world.look.count()), (SESSIONS * 2, SESSIONS));
    assert_eq!(runtime.awake(), SESSIONS);
    within(runtime.close(FOREVER)).await;
    assert_eq!(runtime.awake(), 0);
}
