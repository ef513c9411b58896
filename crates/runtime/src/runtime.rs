//! All sessions: finds or starts the task of a session and implements the inbound ports.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use quintet_kernel::command::{Approve, Command};
use quintet_kernel::event::{NewSession, Seq};
use quintet_kernel::id::MessageId;
use quintet_kernel::port::{BoxFuture, Error, Follower, Receipt, Sessions, StorageError};
use quintet_kernel::{Cursor, SessionId, SessionSummary, State};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cluster::{Action, Done, Membership};
use crate::deps::RuntimeDeps;
use crate::follower::LiveFollower;
use crate::idle::IdleSessions;
use crate::overhead::RecentOverheads;
use crate::session::{CommandReply, SessionMessage, SessionTask, StartMode, SubmittedCommand};
use crate::subagents;
use crate::tail::Tail;

/// Capacity of a session's command channel; further senders wait.
const COMMAND_CHANNEL_CAPACITY: usize = 256;

/// Sessions that are recovered at the same time when the daemon starts. More would not be
/// faster, would each need a file and their journal in memory, and would exceed providers' rate
/// limits.
const RECOVERY_CONCURRENCY: usize = 16;

/// How long aborted tasks have to end.
const ABORT_TIMEOUT: Duration = Duration::from_millis(200);

/// Runs sessions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Runtime {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) deps: RuntimeDeps,
    /// Cancelled at shutdown: no new commands are accepted.
    pub(crate) closing: CancellationToken,
    /// Cancelled when everything is durable and published.
    closed: CancellationToken,
    /// Cancelled when the time for shutdown is up: tasks end where they are.
    aborted: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Limits the number of sessions that are recovered at the same time.
    pub(crate) recovering: Arc<Semaphore>,
    live: Mutex<HashMap<SessionId, mpsc::Sender<SessionMessage>>>,
    tails: Mutex<HashMap<SessionId, Weak<Tail>>>,
    /// The sessions that stay in memory without work.
    pub(crate) idle: IdleSessions,
    /// What the daemon added to the time of recent turns.
    pub(crate) overheads: RecentOverheads,
    pub(crate) membership: Membership,
}

impl Runtime {
    /// A runtime without running sessions.
    pub fn new(deps: RuntimeDeps) -> Self {
        let idle_bytes = deps.timing.idle_bytes;
        let instance = deps.clock.stamp().id::<MessageId>().to_string();
        let shared = |this: &Weak<Shared>| Shared {
            deps: subagents::with_spawn_tool(deps, this),
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
            aborted: CancellationToken::new(),
            tasks: TaskTracker::new(),
            recovering: Arc::new(Semaphore::new(RECOVERY_CONCURRENCY)),
            live: Mutex::default(),
            tails: Mutex::default(),
            idle: IdleSessions::new(idle_bytes),
            overheads: RecentOverheads::default(),
            membership: Membership::new(instance),
        };
        Self { shared: Arc::new_cyclic(shared) }
    }

    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Starts the recovery of all sessions with unfinished work and returns their number. A
    /// session that a client uses meanwhile does not wait for the others. If several nodes
    /// share a store, this node takes part in the cluster from here on. Fails if the sessions
    /// cannot be listed.
    pub async fn recover(&self) -> Result<usize, Error> {
        if let Some(cluster) = &self.shared.deps.cluster {
            return self.join(cluster).await;
        }
        let open = self.shared.deps.session_index.open().await?;
        for session in &open {
            self.shared.channel(session, StartMode::Recover)?;
        }
        Ok(open.len())
    }

    /// Loads a session, which closes work that was left open.
    pub(crate) fn wake(&self, session: &SessionId) -> Result<(), Error> {
        self.shared.channel(session, StartMode::Load).map(drop)
    }

    /// Cancelled when no new commands are accepted.
    pub(crate) fn closing(&self) -> &CancellationToken {
        &self.shared.closing
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn deps(&self) -> &RuntimeDeps {
        &self.shared.deps
    }

    /// Creates a session with this id, unless it exists.
    pub(crate) async fn ensure(&self, id: &SessionId, origin: NewSession) -> Result<(), Error> {
        if self.shared.deps.journal.head(id).await?.is_some() {
            return Ok(());
        }
        let channel = self.shared.channel(id, StartMode::New)?;
        match send_command(&channel, SubmittedCommand::new(Command::Create(origin))).await {
            CommandReply::Answered(answer) => answer.map(drop),
            CommandReply::NotTaken(_) => Err(Error::Closing),
        }
    }

    /// Sends a command to the node that owns the session.
    async fn order(&self, session: &SessionId, command: Command) -> Result<Receipt, Error> {
        match self.route(session, Action::Submit(Box::new(command))).await? {
            Done::Receipt(receipt) => Ok(receipt),
            Done::Removed => Err(Error::NotFound(session.clone())),
        }
    }

    /// Executes a command on this node, if it may own the session.
    pub(crate) async fn carry_out(
        &self,
        session: &SessionId,
        command: Box<Command>,
    ) -> Result<Receipt, Error> {
        let mut command = SubmittedCommand::new(*command);
        loop {
            let channel = self.shared.awaken(session).await?;
            match send_command(&channel, command).await {
                CommandReply::Answered(answer) => return answer,
                // The task ended before it took the command.
                CommandReply::NotTaken(untaken) => command = untaken,
            }
        }
    }

    /// Deletes a session, if this node may own it.
    pub(crate) async fn erase(&self, session: &SessionId) -> Result<(), Error> {
        loop {
            let channel = self.shared.awaken(session).await?;
            let (reply, answer) = oneshot::channel();
            if channel.send(SessionMessage::Erase(reply)).await.is_ok()
                && let Ok(gone) = answer.await
            {
                return gone;
            }
        }
    }

    /// Answers an approval. Requests of subagents are listed in all sessions above them, so
    /// the answer is passed to the session that asked.
    async fn approve(&self, session: &SessionId, approve: Approve) -> Result<Receipt, Error> {
        let asker = self.view(session).await?.approval_session(&approve.question).cloned();
        match asker {
            Some(asker) => {
                let approve = Approve { turn: None, ..approve };
                self.order(&asker, Command::Approve(approve)).await
            }
            None => self.order(session, Command::Approve(approve)).await,
        }
    }

    /// Number of sessions in memory.
    pub fn awake(&self) -> usize {
        lock(&self.shared.live).len()
    }

    /// Shuts down: accepts nothing new, makes everything durable and stops running work,
    /// for at most `within`. Returns the sessions that did not finish in time; what they
    /// had not made durable is lost and was never published as durable.
    pub async fn close(&self, within: Duration) -> Vec<SessionId> {
        let shared = &self.shared;
        shared.take_nothing_new();
        shared.tasks.close();
        let mut unfinished = Vec::new();
        if timeout(within, shared.tasks.wait()).await.is_err() {
            unfinished.extend(lock(&shared.live).keys().cloned());
            tracing::error!(sessions = ?unfinished, "shutdown timed out before all sessions were durable");
            shared.aborted.cancel();
            // A task that is blocked in a system call does not notice the cancellation.
            let _ = timeout(ABORT_TIMEOUT, shared.tasks.wait()).await;
        }
        if shared.deps.cluster.is_some() {
            // Leases that are not released in time end with the node.
            let _ = timeout(within, shared.release_parked()).await;
        }
        shared.closed.cancel();
        unfinished
    }
}

impl Sessions for Runtime {
    fn create(&self, origin: NewSession) -> BoxFuture<'_, Result<Receipt, Error>> {
        Box::pin(async move {
            let id: SessionId = self.shared.deps.clock.stamp().id();
            let channel = self.shared.channel(&id, StartMode::New)?;
            match send_command(&channel, SubmittedCommand::new(Command::Create(origin))).await {
                CommandReply::Answered(answer) => answer,
                CommandReply::NotTaken(_) => Err(Error::Closing),
            }
        })
    }

    fn submit(
        &self,
        session: &SessionId,
        command: Command,
    ) -> BoxFuture<'_, Result<Receipt, Error>> {
        let session = session.clone();
        Box::pin(async move {
            match command {
                Command::Approve(approve) => self.approve(&session, approve).await,
                command => self.order(&session, command).await,
            }
        })
    }

    fn fork(&self, session: &SessionId, at: Option<Seq>) -> BoxFuture<'_, Result<Receipt, Error>> {
        let parent = session.clone();
        Box::pin(async move { self.branch(parent, at).await })
    }

    fn remove(&self, session: &SessionId) -> BoxFuture<'_, Result<(), Error>> {
        let session = session.clone();
        Box::pin(async move { self.route(&session, Action::Remove).await.map(drop) })
    }

    fn view(&self, session: &SessionId) -> BoxFuture<'_, Result<Arc<State>, Error>> {
        let session = session.clone();
        Box::pin(async move {
            let shared = self.deps().cluster.is_some();
            loop {
                // Viewing a session does not take ownership.
                if shared && !self.shared.is_live(&session) {
                    return self.view_elsewhere(&session).await;
                }
                let channel = self.shared.awaken(&session).await?;
                let (reply, answer) = oneshot::channel();
                if channel.send(SessionMessage::View(reply)).await.is_ok()
                    && let Ok(view) = answer.await
                {
                    return match view {
                        Err(Error::Storage(StorageError::Held(_) | StorageError::Fenced))
                            if shared =>
                        {
                            self.view_elsewhere(&session).await
                        }
                        view => view,
                    };
                }
            }
        })
    }

    fn follow(
        &self,
        session: &SessionId,
        from: Cursor,
    ) -> BoxFuture<'_, Result<Box<dyn Follower>, Error>> {
        let session = session.clone();
        Box::pin(async move {
            // The tail comes first: from here on nothing that is published can be missed.
            let tail = self.shared.tail(&session);
            let changed = tail.watch();
            let progress_seen = tail.progress_count();
            let journal = Arc::clone(&self.shared.deps.journal);
            let head =
                journal.head(&session).await?.ok_or_else(|| Error::NotFound(session.clone()))?;
            if from.seq > head {
                return Err(Error::Ahead(from.seq, head));
            }
            let closed = self.shared.closed.clone();
            let (reader, shared) = (from.into(), self.deps().cluster.is_some());
            let follower = LiveFollower {
                session,
                journal,
                tail,
                changed,
                closed,
                reader,
                progress_seen,
                head,
                shared,
            };
            Ok(Box::new(follower) as Box<dyn Follower>)
        })
    }

    fn summary(&self, session: &SessionId) -> BoxFuture<'_, Result<SessionSummary, Error>> {
        let session = session.clone();
        Box::pin(async move {
            let summary = self.deps().session_index.summary(&session).await?;
            summary.ok_or(Error::NotFound(session))
        })
    }

    fn list(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        Box::pin(async move { Ok(self.shared.deps.session_index.list(limit).await?) })
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        let workspace = workspace.map(Path::to_path_buf);
        Box::pin(
            async move { Ok(self.deps().session_index.recent(workspace.as_deref(), limit).await?) },
        )
    }

    fn forks(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<SessionSummary>, Error>> {
        let session = session.clone();
        Box::pin(async move { Ok(self.deps().session_index.forks(&session).await?) })
    }
}

impl Shared {
    /// The command channel of an existing session.
    async fn awaken(
        self: &Arc<Self>,
        session: &SessionId,
    ) -> Result<mpsc::Sender<SessionMessage>, Error> {
        if self.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        if let Some(channel) = open_channel(&lock(&self.live), session) {
            return Ok(channel);
        }
        match self.deps.journal.head(session).await? {
            Some(_) => self.channel(session, StartMode::Load),
            None => Err(Error::NotFound(session.clone())),
        }
    }

    /// The command channel of a session; starts its task if it has none.
    pub(crate) fn channel(
        self: &Arc<Self>,
        session: &SessionId,
        begin: StartMode,
    ) -> Result<mpsc::Sender<SessionMessage>, Error> {
        let mut live = lock(&self.live);
        // Checked under the lock, so that `close` waits for every task that is started.
        if self.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        if let Some(channel) = open_channel(&live, session) {
            return Ok(channel);
        }
        let (sender, messages) = mpsc::channel(COMMAND_CHANNEL_CAPACITY);
        live.insert(session.clone(), sender.clone());
        let _waited_for = self.tasks.token();
        drop(live);
        // If the runtime no longer spawns tasks, the task is dropped at once, and its drop needs
        // the lock.
        let task = SessionTask::new(Arc::clone(self), session.clone(), messages);
        let aborted = self.aborted.clone();
        self.tasks.spawn(async move { aborted.run_until_cancelled(task.run(begin)).await });
        Ok(sender)
    }

    /// True if a task of this node has the session.
    pub(crate) fn is_live(&self, session: &SessionId) -> bool {
        open_channel(&lock(&self.live), session).is_some()
    }

    /// Loads a session after a delay, unless the daemon shuts down.
    pub(crate) fn wake_later(self: &Arc<Self>, session: &SessionId, delay: Duration) {
        let (shared, session) = (Arc::clone(self), session.clone());
        self.tasks.spawn(async move {
            if timeout(delay, shared.closing.cancelled()).await.is_err() {
                let _ = shared.channel(&session, StartMode::Recover);
            }
        });
    }

    fn take_nothing_new(&self) {
        let _live = lock(&self.live);
        self.closing.cancel();
    }

    /// Forgets a session's task, which has closed its channel; the next message starts a
    /// new one.
    pub(crate) fn retire(&self, session: &SessionId) {
        let mut live = lock(&self.live);
        // There may be a new task already, which must stay.
        if live.get(session).is_some_and(mpsc::Sender::is_closed) {
            live.remove(session);
            shrink(&mut live);
        }
        drop(live);
        let mut tails = lock(&self.tails);
        if tails.get(session).is_some_and(|tail| tail.strong_count() == 0) {
            tails.remove(session);
            shrink(&mut tails);
        }
    }

    /// The tail of a session, if it exists on this node.
    pub(crate) fn known_tail(&self, session: &SessionId) -> Option<Arc<Tail>> {
        lock(&self.tails).get(session).and_then(Weak::upgrade)
    }

    /// Sessions that are followed here but not loaded on this node.
    pub(crate) fn followed_elsewhere(&self) -> Vec<SessionId> {
        let tails = lock(&self.tails);
        let followed = |tail: &Weak<Tail>| tail.upgrade().is_some_and(|tail| tail.is_followed());
        let followed = tails.iter().filter(|(_, tail)| followed(tail)).map(|(id, _)| id.clone());
        let followed: Vec<_> = followed.collect();
        drop(tails);
        followed.into_iter().filter(|session| !self.is_live(session)).collect()
    }

    /// The tail of a session, shared by its task and its followers.
    pub(crate) fn tail(&self, session: &SessionId) -> Arc<Tail> {
        let mut tails = lock(&self.tails);
        if let Some(tail) = tails.get(session).and_then(Weak::upgrade) {
            return tail;
        }
        // Tails of sessions that are not in memory remain after their last follower is gone.
        if tails.len() == tails.capacity() {
            tails.retain(|_, tail| tail.strong_count() > 0);
        }
        let tail = Arc::new(Tail::new());
        tails.insert(session.clone(), Arc::downgrade(&tail));
        tail
    }
}

/// Releases memory of a map that had many more entries.
fn shrink<V>(map: &mut HashMap<SessionId, V>) {
    if map.len() < map.capacity() / 4 {
        map.shrink_to(map.capacity() / 2);
    }
}

/// The channel of a running task.
fn open_channel(
    live: &HashMap<SessionId, mpsc::Sender<SessionMessage>>,
    session: &SessionId,
) -> Option<mpsc::Sender<SessionMessage>> {
    live.get(session).filter(|channel| !channel.is_closed()).cloned()
}

async fn send_command(
    channel: &mpsc::Sender<SessionMessage>,
    command: Box<SubmittedCommand>,
) -> CommandReply {
    let (reply, answer) = oneshot::channel();
    if let Err(mpsc::error::SendError(messages)) =
        channel.send(SessionMessage::Submit(command, reply)).await
    {
        return match messages {
            SessionMessage::Submit(command, _) => CommandReply::NotTaken(command),
            SessionMessage::View(_) | SessionMessage::Erase(_) => {
                unreachable!("a command was sent")
            }
        };
    }
    // A task that dies while it executes a command may or may not have stored its events.
    let lost = || StorageError::Unavailable("the session ended before it answered".into());
    answer.await.unwrap_or_else(|_| CommandReply::Answered(Err(lost().into())))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
