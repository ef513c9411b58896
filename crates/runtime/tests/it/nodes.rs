//! Tests of two nodes on one store: ownership of sessions, routing of commands, and nodes that die,
//! pause or are drained.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quintet_kernel::client::ClientRef;
use quintet_kernel::follow::Delta;
use quintet_kernel::port::{
    BoxFuture, Drafts, Error, Forward, ForwardError, NodeAddress, Nodes as _, SessionObserver,
    Sessions, StorageError,
};
use quintet_kernel::session_summary::Status;
use quintet_kernel::tool::{Outcome, Risk, ToolKind};
use quintet_kernel::toolset::{ClientTool, Toolset};
use quintet_kernel::{CallId, Command, Cursor, SessionId};
use quintet_runtime::{Cluster, Runtime, RuntimeDeps};
use quintet_stores::memory::MemoryStore;
use tokio::sync::Notify;

use crate::world::{Client, World, label, name, say, settle, within};

const LEASE: Duration = Duration::from_secs(10);

/// Connections between the nodes, which can be broken.
#[derive(Clone, Default)]
struct Network {
    nodes: Arc<Mutex<HashMap<String, Runtime>>>,
    state: Arc<Mutex<Link>>,
    sent: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Link {
    #[default]
    Whole,
    Cut,
    /// Requests arrive, but replies do not.
    NoReplies,
}

impl Network {
    fn set(&self, state: Link) {
        *self.state.lock().unwrap() = state;
    }
}

impl Forward for Network {
    fn send(
        &self,
        to: &NodeAddress,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<Vec<u8>, ForwardError>> {
        let node = self.nodes.lock().unwrap().get(&to.name).cloned();
        let state = *self.state.lock().unwrap();
        Box::pin(async move {
            let Some(node) = node.filter(|_| state != Link::Cut) else {
                return Err(ForwardError::Unreachable("no connection".into()));
            };
            self.sent.fetch_add(1, Ordering::SeqCst);
            let reply = node.serve_node(&body).await;
            match state {
                Link::NoReplies => Err(ForwardError::Unanswered("connection reset".into())),
                Link::Whole | Link::Cut => Ok(reply),
            }
        })
    }
}

/// Drafts must not be used: another node could not read them.
struct NoDrafts;

impl Drafts for NoDrafts {
    fn push(&self, _: &SessionId, _: &Delta) -> Result<(), StorageError> {
        panic!("text must be in the journal before it is shown");
    }

    fn load(&self, _: &SessionId) -> Result<Vec<Delta>, StorageError> {
        Ok(Vec::new())
    }

    fn clear(&self, _: &SessionId) {}
}

/// A node: its handle on the store, and its runtime.
struct Node {
    store: MemoryStore,
    runtime: Runtime,
    observed: Arc<Observed>,
}

#[derive(Default)]
struct Observed(Mutex<Vec<SessionId>>, Notify);

impl SessionObserver for Observed {
    fn published(&self, session: &SessionId, _: u64) {
        self.0.lock().unwrap().push(session.clone());
    }

    fn erased(&self, _: &SessionId) {
        self.1.notify_one();
    }
}

async fn node(world: &World, network: &Network, name: &str) -> Node {
    let store = world.store.node(name);
    let observed = Arc::new(Observed::default());
    let runtime = Runtime::new(RuntimeDeps {
        journal: Arc::new(store.clone()),
        leases: Arc::new(store.clone()),
        session_index: Arc::new(store.clone()),
        drafts: Arc::new(NoDrafts),
        observers: vec![observed.clone()],
        cluster: Some(Cluster {
            nodes: Arc::new(store.clone()),
            forward: Arc::new(network.clone()),
            lease: LEASE,
        }),
        ..world.deps()
    });
    network.nodes.lock().unwrap().insert(name.into(), runtime.clone());
    runtime.recover().await.unwrap();
    Node { store, runtime, observed }
}

async fn pair(world: &World) -> (Node, Node, Network) {
    let network = Network::default();
    (node(world, &network, "a").await, node(world, &network, "b").await, network)
}

/// The names of the durable events; checks that they are numbered without gaps.
async fn names(world: &World, session: &SessionId) -> Vec<&'static str> {
    let records = world.journal_of(session).await;
    let seqs: Vec<u64> = records.iter().map(|record| record.seq).collect();
    assert_eq!(seqs, (1..=records.len() as u64).collect::<Vec<_>>());
    records.iter().map(|record| name(&record.event)).collect()
}

/// Number of sessions that a node owns.
async fn owned(node: &Node) -> u64 {
    let this = node.store.this().name;
    let nodes = node.store.list().await.unwrap();
    nodes.into_iter().find(|node| node.name == this).unwrap().sessions
}

#[tokio::test(start_paused = true)]
async fn any_node_reads_follows_and_commands_any_session() {
    let world = World::new();
    let (a, b, network) = pair(&world).await;
    let session = a.runtime.begin().await;
    assert_eq!(b.runtime.state(&session).await.head, 1);
    let mut watcher = b.runtime.watch(&session, Cursor::START).await;
    let receipt = b.runtime.say(&session, "go").await.unwrap();
    assert!(receipt.message().unwrap().started, "the receipt comes back");
    assert_eq!(network.sent.load(Ordering::SeqCst), 1);
    let asked = world.asked().await;
    asked.say("some ");
    watcher.until("<step>some ").await;
    asked.say("text");
    asked.finish();
    watcher.turn_over().await;
    assert_eq!(watcher.story(), "<created><said><turn><step>some text<answered><done>");
    assert!(
        b.observed.0.lock().unwrap().contains(&session),
        "observers on other nodes are notified"
    );
    let state = b.runtime.state(&session).await;
    assert_eq!((state.status, state.turns.len()), (Status::Active, 1));
    assert_eq!((owned(&a).await, owned(&b).await), (1, 0), "viewing does not take ownership");
    assert!(matches!(b.runtime.say(&"s-unknown".parse_id(), "x").await, Err(Error::NotFound(_))));
    assert_eq!(b.runtime.list(9).await.unwrap().len(), 1);
}

trait ParseId {
    fn parse_id(&self) -> SessionId;
}

impl ParseId for str {
    fn parse_id(&self) -> SessionId {
        SessionId::parse(self).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_owner_is_returned() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    b.runtime.say(&session, "go").await.unwrap();
    assert!(matches!(b.runtime.say(&session, "again").await, Err(Error::Refused(_))));
    b.runtime.cancel(&session).await.unwrap();
    assert!(names(&world, &session).await.ends_with(&["stop", "interrupted", "cancelled"]));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_erased_and_forked_from_any_node() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    let fork = within(b.runtime.fork(&session, None)).await.unwrap().session;
    b.runtime.label(&fork, "own").await.unwrap();
    let mut watcher = b.runtime.watch(&session, Cursor::START).await;
    watcher.until("<created>").await;
    within(b.runtime.remove(&session)).await.unwrap();
    assert!(matches!(within(watcher.more()).await, Err(Error::NotFound(_))));
    for node in [&a, &b] {
        assert!(matches!(node.runtime.view(&session).await, Err(Error::NotFound(_))));
        assert_eq!(node.runtime.state(&fork).await.head, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_followers_learns_that_a_session_was_erased() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    a.runtime.remove(&session).await.unwrap();
    within(b.observed.1.notified()).await;
}

#[tokio::test(start_paused = true)]
async fn without_a_connection_commands_go_through_the_store() {
    let world = World::new();
    let (a, b, network) = pair(&world).await;
    let session = a.runtime.begin().await;
    network.set(Link::Cut);
    let receipt = b.runtime.say(&session, "go").await.unwrap();
    assert!(receipt.turn().is_some());
    world.asked().await.finish();
    b.runtime.watch(&session, Cursor::START).await.turn_over().await;
    // A command that is not repeatable is not left in the store, because it may be read too late.
    let refused = within(b.runtime.submit(&session, Command::Compact)).await;
    assert!(matches!(refused, Err(Error::Storage(StorageError::Held(_)))), "{refused:?}");
    assert_eq!(names(&world, &session).await.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_duplicates_nothing() {
    let world = World::new();
    let (a, b, network) = pair(&world).await;
    let session = a.runtime.begin().await;
    network.set(Link::NoReplies);
    let mut sending = Box::pin(b.runtime.submit(&session, say("go")));
    let asked = tokio::select! {
        asked = world.asked() => asked,
        done = &mut sending => panic!("there can be no reply: {done:?}"),
    };
    network.set(Link::Whole);
    let receipt = within(sending).await.unwrap();
    assert!(receipt.message().is_some_and(|added| added.started));
    asked.finish();
    b.runtime.watch(&session, Cursor::START).await.turn_over().await;
    let story = ["created", "said", "turn", "step", "answered", "done"];
    assert_eq!(names(&world, &session).await, story);
    // The client learns that the outcome of a command that is not repeatable is unknown.
    network.set(Link::NoReplies);
    let unknown = within(b.runtime.submit(&session, Command::Compact)).await;
    assert!(matches!(unknown, Err(Error::Storage(StorageError::Unavailable(_)))), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_a_dead_owner_stored_is_found() {
    let world = World::new();
    let (a, b, network) = pair(&world).await;
    let session = a.runtime.begin().await;
    network.set(Link::NoReplies);
    let mut sending = Box::pin(b.runtime.submit(&session, say("go")));
    tokio::select! {
        _ = world.asked() => {}
        done = &mut sending => panic!("there can be no reply: {done:?}"),
    }
    a.store.crash();
    network.nodes.lock().unwrap().remove("a");
    let receipt = within(sending).await.unwrap();
    assert!(receipt.message().is_some_and(|added| added.started));
    assert_eq!(names(&world, &session).await.iter().filter(|name| **name == "said").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dead_nodes_turn_continues_without_repeating_its_tools() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let (a, b, network) = pair(&world).await;
    let session = a.runtime.begin().await;
    a.runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "edit", "{}"), ("c2", "shell", "{}")]);
    let _running = within(world.edit.started()).await;
    let mut watcher = b.runtime.watch(&session, Cursor::START).await;
    watcher.until("<call>").await;
    a.store.crash();
    network.nodes.lock().unwrap().remove("a");
    // The running call is reported as interrupted; the approval request of the other one is
    // answered at b.
    watcher.until("<ask>").await;
    assert_eq!(b.runtime.state(&session).await.status, Status::WaitingApproval);
    b.runtime.allow(&session, "c2").await.unwrap();
    within(world.shell.started()).await.finish(Outcome::success("fine"));
    world.asked().await.finish();
    watcher.turn_over().await;
    assert_eq!((world.edit.count(), world.shell.count()), (1, 1));
    let all = names(&world, &session).await;
    assert_eq!(all.iter().filter(|name| **name == "done").count(), 1);
    assert_eq!((owned(&a).await, owned(&b).await), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_paused_node_appends_nothing_when_it_resumes() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    a.runtime.say(&session, "go").await.unwrap();
    let first = world.asked().await;
    let mut watcher = a.runtime.watch(&session, Cursor::START).await;
    watcher.until("<step>").await;
    a.store.crash();
    let second = world.asked().await;
    // Node a does not know yet, and its model continues to write.
    first.say("old");
    first.finish();
    settle().await;
    second.say("new");
    second.finish();
    watcher.turn_over().await;
    let story = "<created><said><turn><step><resumed>new<answered><done>";
    assert_eq!(watcher.story(), story, "followers at a see what b does");
    // Node b executes the command, and a knows that.
    a.runtime.label(&session, "x").await.unwrap();
    watcher.until("<labelled>").await;
    assert_eq!((owned(&a).await, owned(&b).await), (0, 1));
    assert_eq!(names(&world, &session).await.len(), 9);
}

#[tokio::test(start_paused = true)]
async fn lost_leases_stop_running_work() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    a.runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    let job = within(world.shell.started()).await;
    b.store.drain("b", true).await.unwrap();
    a.store.lose_leases();
    within(job.stopped()).await;
    job.finish(Outcome::success("too late"));
    // The node that lost its leases resumes the turn; the call is not repeated.
    let asked = world.asked().await;
    asked.finish();
    b.runtime.watch(&session, Cursor::START).await.turn_over().await;
    assert_eq!(world.shell.count(), 1);
    assert_eq!(names(&world, &session).await.iter().filter(|name| **name == "done").count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_leaves_memory_can_be_owned_by_any_node() {
    let world = World::new();
    let (a, b, network) = pair(&world).await;
    let session = a.runtime.begin().await;
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    assert_eq!((a.runtime.awake(), owned(&a).await), (0, 0));
    b.runtime.label(&session, "x").await.unwrap();
    assert_eq!((owned(&b).await, network.sent.load(Ordering::SeqCst)), (1, 0));
    a.runtime.label(&session, "y").await.unwrap();
    assert_eq!(network.sent.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_turn_stays_with_its_node_until_the_node_is_drained() {
    let mut world = World::new();
    world.ask_for = vec![ToolKind::Exec];
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    a.runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "shell", "{}")]);
    a.runtime.watch(&session, Cursor::START).await.until("<ask>").await;
    tokio::time::sleep(world.timing.hibernate_after * 2).await;
    assert_eq!((a.runtime.awake(), owned(&a).await), (0, 1));
    a.store.drain("a", true).await.unwrap();
    tokio::time::sleep(LEASE * 2).await;
    assert_eq!((owned(&a).await, owned(&b).await), (0, 1));
    a.runtime.allow(&session, "c1").await.unwrap();
    within(world.shell.started()).await.finish(Outcome::success("fine"));
    world.asked().await.finish();
    a.runtime.watch(&session, Cursor::START).await.turn_over().await;
    assert_eq!((owned(&a).await, world.shell.count()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_drained_node_takes_no_sessions() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    a.store.drain("a", true).await.unwrap();
    tokio::time::sleep(LEASE).await;
    assert_eq!(owned(&a).await, 0);
    a.runtime.label(&session, "x").await.unwrap();
    assert_eq!((owned(&a).await, owned(&b).await), (0, 1));
    // The only node left accepts sessions even while it is drained.
    b.store.drain("b", true).await.unwrap();
    tokio::time::sleep(LEASE).await;
    a.runtime.label(&session, "y").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn closing_releases_all_sessions() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    a.runtime.say(&session, "go").await.unwrap();
    world.asked().await.say("part");
    b.runtime.watch(&session, Cursor::START).await.until("part").await;
    assert!(a.runtime.close(Duration::from_secs(9)).await.is_empty());
    world.asked().await.finish();
    let mut watcher = b.runtime.watch(&session, Cursor::START).await;
    watcher.turn_over().await;
    let story = "<created><said><turn><step>part<interrupted><resumed><step><answered><done>";
    assert_eq!(watcher.story(), story);
}

#[tokio::test(start_paused = true)]
async fn concurrent_commands_from_both_nodes_are_all_accepted() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    let keys: Vec<String> = (0..50).map(|n| format!("k{n}")).collect();
    let labels = keys.iter().enumerate().map(|(n, key)| {
        let runtime = if n % 2 == 0 { &a.runtime } else { &b.runtime };
        runtime.submit(&session, label(key))
    });
    for done in futures_util::future::join_all(labels).await {
        done.unwrap();
    }
    assert_eq!(names(&world, &session).await.len(), 51);
}

#[tokio::test(start_paused = true)]
async fn calls_of_a_dead_nodes_clients_are_given_to_others() {
    let world = World::new();
    let (a, b, _) = pair(&world).await;
    let session = a.runtime.begin().await;
    let tool = ClientTool {
        name: "open_app".into(),
        description: "Opens an app.".into(),
        schema: serde_json::json!({ "type": "object" }),
        risk: Risk::Low,
        repeatable: false,
        front_end: None,
        strict: false,
    };
    let toolset = Toolset { client: vec![tool], ..Toolset::default() };
    a.runtime.submit(&session, Command::SetTools(toolset)).await.unwrap();
    a.runtime.say(&session, "go").await.unwrap();
    world.asked().await.call(&[("c1", "open_app", "{}")]);
    a.runtime.watch(&session, Cursor::START).await.until("<call>").await;
    let calls = vec![CallId::parse("c1").unwrap()];
    let claim = |connection: &str, came_back| Command::ClaimCalls {
        calls: calls.clone(),
        by: ClientRef::connected("test/desktop", connection),
        came_back,
    };
    within(b.runtime.submit(&session, claim("one", false))).await.unwrap();
    // The client was connected to b. It reconnects at a, which learns that b is dead.
    let refused = within(a.runtime.submit(&session, claim("two", true))).await;
    assert!(matches!(refused, Err(Error::Refused(_))), "{refused:?}");
    b.store.crash();
    let mut watcher = a.runtime.watch(&session, Cursor::START).await;
    watcher.until("<holder lost>").await;
    within(a.runtime.submit(&session, claim("two", true))).await.unwrap();
}
