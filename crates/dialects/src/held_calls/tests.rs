//! Claims of one connection, against sessions that only record commands.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use quintet_kernel::event::{Record, Seq};
use quintet_kernel::port::{BoxFuture, Receipt};
use quintet_kernel::session_summary::SessionSummary;
use quintet_kernel::{State, Time, TurnId};
use tokio::sync::{Notify, mpsc};

use super::*;

/// One session: commands in, events out.
#[derive(Default)]
struct Recorder {
    inner: Mutex<Inner>,
    /// Notified of each command.
    submitted: Notify,
    /// True if commands are never answered.
    silent: bool,
}

#[derive(Default)]
struct Inner {
    commands: Vec<String>,
    head: Seq,
    followers: Vec<mpsc::UnboundedSender<Vec<Item>>>,
}

struct FakeFollower(mpsc::UnboundedReceiver<Vec<Item>>);

impl Follower for FakeFollower {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Vec<Item>>, Error>> {
        Box::pin(async { Ok(self.0.recv().await) })
    }

    fn head(&self) -> Seq {
        0
    }

    fn position(&self) -> Cursor {
        Cursor::START
    }
}

impl Recorder {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    /// Publishes an event to all followers.
    fn publish(&self, event: Event) -> Arc<Record> {
        let mut inner = self.lock();
        inner.head += 1;
        let record = Arc::new(Record { seq: inner.head, at: Time::default(), event });
        let items = || vec![Item::Event(Arc::clone(&record))];
        inner.followers.retain(|follower| follower.send(items()).is_ok());
        record
    }

    /// Waits until this many commands were submitted, and returns them.
    async fn commands(&self, count: usize) -> Vec<String> {
        loop {
            let submitted = self.submitted.notified();
            let commands = self.lock().commands.clone();
            if commands.len() >= count {
                return commands;
            }
            submitted.await;
        }
    }
}

impl Sessions for Recorder {
    fn submit(
        &self,
        session: &SessionId,
        command: Command,
    ) -> BoxFuture<'_, Result<Receipt, Error>> {
        let (described, session) = (describe(&command), session.clone());
        Box::pin(async move {
            self.lock().commands.push(described);
            self.submitted.notify_waiters();
            if self.silent {
                std::future::pending::<()>().await;
            }
            let records = match command {
                Command::ClaimCalls { calls, by, .. } => {
                    let claimed = |call| Event::CallClaimed { turn: turn(), call, by: by.clone() };
                    calls.into_iter().map(|call| self.publish(claimed(call))).collect()
                }
                _ => Vec::new(),
            };
            Ok(Receipt { session, records })
        })
    }

    fn view(&self, _: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        unimplemented!("not used by these tests")
    }

    fn follow(&self, _: &SessionId, _: Cursor) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.lock().followers.push(sender);
        Box::pin(async { Ok(Box::new(FakeFollower(receiver)) as Box<dyn Follower>) })
    }

    fn summary(&self, _: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        unimplemented!("not used by these tests")
    }

    fn list(&self, _: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unimplemented!("not used by these tests")
    }

    fn recent(
        &self,
        _: Option<&Path>,
        _: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unimplemented!("not used by these tests")
    }

    fn forks(&self, _: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        unimplemented!("not used by these tests")
    }
}

fn describe(command: &Command) -> String {
    match command {
        Command::ClaimCalls { calls, came_back, .. } => {
            let calls: Vec<&str> = calls.iter().map(CallId::as_str).collect();
            format!("claim {}{}", calls.join(" "), if *came_back { ", come back" } else { "" })
        }
        Command::Disconnect { .. } => "disconnect".into(),
        other => format!("{other:?}"),
    }
}

fn turn() -> TurnId {
    TurnId::parse("t1").unwrap()
}

fn call() -> CallId {
    CallId::parse("c1").unwrap()
}

fn held(sessions: &Arc<Recorder>) -> (HeldCalls, SessionId) {
    let client = ClientRef::connected("client", "1");
    let sessions = Arc::clone(sessions) as Arc<dyn Sessions>;
    (HeldCalls::new(sessions, client), SessionId::parse("s1").unwrap())
}

fn lost_by(client: &str) -> Event {
    let by = ClientRef::connected(client, "1");
    Event::ClaimHolderLost { turn: turn(), call: call(), by, until: Time::default() }
}

#[tokio::test]
async fn a_connection_that_ends_while_it_claims_releases_the_call() {
    let sessions = Arc::new(Recorder { silent: true, ..Recorder::default() });
    let (mut held, session) = held(&sessions);
    tokio::select! {
        _ = held.claim(&session, vec![call()]) => unreachable!("commands are never answered"),
        _ = sessions.commands(1) => {}
    }
    assert!(!held.is_empty());
    tokio::select! {
        () = held.release() => unreachable!("commands are never answered"),
        commands = sessions.commands(2) => assert_eq!(commands, ["claim c1", "disconnect"]),
    }
}

#[tokio::test]
async fn a_live_connection_renews_claims_that_count_as_lost() {
    let sessions = Arc::new(Recorder::default());
    let (mut held, session) = held(&sessions);
    assert!(held.claim(&session, vec![call()]).await.unwrap());
    sessions.publish(lost_by("other"));
    sessions.publish(lost_by("client"));
    let commands = sessions.commands(2).await;
    assert_eq!(commands, ["claim c1", "claim c1, come back"]);
    // After the release, a lost claim is not renewed.
    held.release().await;
    sessions.publish(lost_by("client"));
    let commands = sessions.commands(3).await;
    assert_eq!(commands[2..], ["disconnect"]);
    assert!(sessions.lock().followers.is_empty(), "the session is no longer followed");
}
