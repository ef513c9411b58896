//! Tests that a panic ends a call or a session's task, not the session.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quintet_kernel::follow::Delta;
use quintet_kernel::port::{
    BoxFuture, Drafts, Invocation, StorageError, Tool, ToolContext, ToolOutput,
};
use quintet_kernel::tool::{Assessment, ToolSpec};
use quintet_kernel::{Cursor, SessionId};
use quintet_runtime::{Runtime, RuntimeDeps};
use quintet_stores::memory::MemoryStore;

use crate::world::{Client, World};

/// A tool that panics.
struct Buggy(Arc<dyn Tool>);

impl Tool for Buggy {
    fn spec(&self) -> Arc<ToolSpec> {
        self.0.spec()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        self.0.assess(call)
    }

    fn run(&self, _: Invocation, _: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async { panic!("a bug in a tool") })
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_fails() {
    let world = World::new();
    let mut deps = world.deps();
    let buggy = Buggy(Arc::clone(&deps.tools["shell"]));
    deps.tools.insert("shell".into(), Arc::new(buggy));
    let runtime = Runtime::new(deps);
    let session = runtime.begin().await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let asked = world.asked().await;
    assert_eq!(crate::crash::results(&asked), ["internal error"]);
    asked.finish();
    runtime.watch(&session, Cursor::START).await.turn_over().await;
}

/// Drafts that panic once.
struct PanicsOnce(MemoryStore, AtomicBool);

impl Drafts for PanicsOnce {
    fn push(&self, session: &SessionId, piece: &Delta) -> Result<(), StorageError> {
        assert!(!self.1.swap(false, Ordering::SeqCst), "a bug in the session's task");
        self.0.push(session, piece)
    }

    fn load(&self, session: &SessionId) -> Result<Vec<Delta>, StorageError> {
        self.0.load(session)
    }

    fn clear(&self, session: &SessionId) {
        self.0.clear(session);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_task_panicked_is_loaded_by_the_next_command() {
    let world = World::new();
    let drafts = Arc::new(PanicsOnce(world.store.clone(), AtomicBool::new(true)));
    let runtime = Runtime::new(RuntimeDeps { drafts, ..world.deps() });
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    runtime.say(&session, "go").await.unwrap();
    let asked = world.asked().await;
    asked.say("boom");
    crate::world::within(asked.hung_up()).await;
    assert_eq!(runtime.awake(), 0);
    runtime.label(&session, "a").await.unwrap();
    world.asked().await.finish();
    watcher.turn_over().await;
    assert_eq!(watcher.story(), "<created><said><turn><step><resumed><labelled><answered><done>");
}

#[tokio::test(start_paused = true)]
async fn a_turn_continues_after_its_task_panicked() {
    let world = World::new();
    let drafts = Arc::new(PanicsOnce(world.store.clone(), AtomicBool::new(true)));
    let runtime = Runtime::new(RuntimeDeps { drafts, ..world.deps() });
    let session = runtime.begin().await;
    let mut watcher = runtime.watch(&session, Cursor::START).await;
    runtime.say(&session, "go").await.unwrap();
    world.asked().await.say("boom");
    world.asked().await.finish();
    watcher.turn_over().await;
}
