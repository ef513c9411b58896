//! Decides whether this node or the owner of the session executes a request.
//!
//! The owner is the node that holds the session's lease in the store. A request goes there over
//! HTTP or, if that node cannot be reached, through the store's inbox. A request that may have been
//! executed already is sent again only if it is repeatable ([`Action::is_repeatable`]); otherwise
//! the client gets an error that the outcome is unknown.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::event::{Event, Record};
use quintet_kernel::id::MessageId;
use quintet_kernel::port::{
    Error, ForwardError, NodeAddress, NodeStatus, Page, Receipt, StorageError,
};
use quintet_kernel::{SessionId, TurnId};
use tokio::time::{Instant, sleep, timeout};

use super::request::{Action, Done, Reply, Request, Sender};
use super::{Cluster, elsewhere};
use crate::runtime::Runtime;

/// Delay before a request is retried.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// How often the inbox is polled for a reply.
const REPLY_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum time that a live node may take for a request; a cancel waits until running work has
/// stopped.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of lease durations after which the search for an owner ends.
const ROUTE_LEASES_LIMIT: u32 = 3;

const PAGE: Page = Page { events: 1024, bytes: 4 * 1024 * 1024 };

/// The result of sending a request to a node.
enum Attempt {
    /// The node's answer.
    Answered(Result<Done, Error>),
    /// Nothing was done.
    Nothing,
    /// The request may have been executed, or may yet be.
    Unknown(String),
}

impl Runtime {
    /// Sends a request to the node that owns the session.
    pub(crate) async fn route(&self, session: &SessionId, action: Action) -> Result<Done, Error> {
        match self.deps().cluster.clone() {
            None => self.here(session, action).await,
            Some(cluster) => {
                let deadline = Instant::now() + cluster.lease * ROUTE_LEASES_LIMIT;
                let route = Route {
                    runtime: self,
                    cluster,
                    session,
                    key: self.deps().clock.stamp().id::<MessageId>().to_string(),
                    deadline,
                    sent: false,
                };
                route.follow(action).await
            }
        }
    }

    /// Executes a request, if this node may own the session.
    pub(crate) async fn here(&self, session: &SessionId, action: Action) -> Result<Done, Error> {
        match action {
            Action::Submit(command) => self.carry_out(session, command).await.map(Done::Receipt),
            Action::Remove => self.erase(session).await.map(|()| Done::Removed),
        }
    }
}

/// A request that is being routed.
struct Route<'a> {
    runtime: &'a Runtime,
    cluster: Cluster,
    session: &'a SessionId,
    key: String,
    deadline: Instant,
    /// True once the request may have been executed elsewhere.
    sent: bool,
}

impl Route<'_> {
    async fn follow(mut self, mut action: Action) -> Result<Done, Error> {
        if let Some(node) = self.instead_of_this().await {
            action = action.with_key(&self.key);
            match self.there(&node, &action).await {
                Attempt::Answered(answer) => return answer,
                Attempt::Nothing => {}
                Attempt::Unknown(why) if !action.is_repeatable() => return Err(unknown(&why)),
                Attempt::Unknown(_) => self.sent = true,
            }
        }
        let mut dead = None;
        loop {
            let answer = self.attempt(&action).await;
            let error = match answer {
                Err(error @ Error::Storage(StorageError::Held(_) | StorageError::Fenced)) => error,
                answer => return self.completed(answer, &action).await,
            };
            if let Some(owner) = elsewhere(&error) {
                // The owner is dead, and no other node may own the session, because none has its
                // workspace.
                if dead.as_ref() == Some(owner) {
                    return Err(self.gave_up(error));
                }
                action = action.with_key(&self.key);
                match self.there(owner, &action).await {
                    Attempt::Answered(answer) => return self.completed(answer, &action).await,
                    Attempt::Nothing => dead = self.is_dead(owner).await.then(|| owner.clone()),
                    Attempt::Unknown(why) if !action.is_repeatable() => return Err(unknown(&why)),
                    Attempt::Unknown(_) => self.sent = true,
                }
            }
            if Instant::now() >= self.deadline {
                return Err(self.gave_up(error));
            }
            sleep(RETRY_DELAY).await;
        }
    }

    /// Executes the request here, unless the session is owned elsewhere. A request that may be in
    /// the inbox is recorded by its key, because this node may read it there, too.
    async fn attempt(&self, action: &Action) -> Result<Done, Error> {
        if !self.sent {
            return self.runtime.here(self.session, action.clone()).await;
        }
        let shared = self.runtime.shared();
        let request = self.request(action);
        let reply = shared.membership.served.serve(self.runtime, request).await;
        match Reply::decode(&reply).map_err(|error| unknown(&error.to_string()))? {
            Reply::NotOwner => {
                // The next attempt to acquire the lease finds the owner.
                self.runtime.here(self.session, action.clone()).await
            }
            reply => match answered(reply) {
                Attempt::Answered(answer) => answer,
                Attempt::Nothing => Err(StorageError::Fenced.into()),
                Attempt::Unknown(why) => Err(unknown(&why)),
            },
        }
    }

    fn request(&self, action: &Action) -> Request {
        let name = self.cluster.nodes.this().name;
        let from = Sender { name, instance: self.runtime.shared().membership.instance.clone() };
        let (key, session) = (self.key.clone(), self.session.clone());
        Request { key, from, session, action: action.clone() }
    }

    /// Sends the request to another node.
    async fn there(&self, node: &NodeAddress, action: &Action) -> Attempt {
        let body = self.request(action).encode();
        if node.advertise.is_some() {
            match self.directly(node, body.clone()).await {
                Ok(reply) => return read_reply(&reply),
                Err(ForwardError::Unanswered(why)) => return Attempt::Unknown(why),
                Err(ForwardError::Unreachable(why)) => {
                    tracing::debug!(node = %node.name, %why, "could not reach a node");
                }
            }
        }
        // The request in the inbox may be read after this node has stopped waiting.
        if action.is_repeatable() && !self.is_dead(node).await {
            self.by_inbox(body).await
        } else {
            Attempt::Nothing
        }
    }

    /// The error for the client if no owner was found.
    fn gave_up(&self, error: Error) -> Error {
        if self.sent { unknown(&error.to_string()) } else { error }
    }

    /// Sends the request directly; does not wait for a node that dies meanwhile.
    async fn directly(&self, node: &NodeAddress, body: Vec<u8>) -> Result<Vec<u8>, ForwardError> {
        let reply = self.cluster.forward.send(node, body);
        let died = async {
            loop {
                sleep(self.cluster.lease / 2).await;
                if self.is_dead(node).await {
                    return;
                }
            }
        };
        let silent = |why: &str| Err(ForwardError::Unanswered(why.into()));
        tokio::select! {
            reply = timeout(REPLY_TIMEOUT, reply) => {
                reply.unwrap_or_else(|_| silent("it took too long"))
            }
            () = died => silent("it died"),
        }
    }

    async fn by_inbox(&self, body: Vec<u8>) -> Attempt {
        let nodes = &self.cluster.nodes;
        if let Err(error) = nodes.send(self.session, &self.key, body).await {
            return Attempt::Unknown(error.to_string());
        }
        let give_up = Instant::now() + self.cluster.lease / 2;
        while Instant::now() < give_up {
            sleep(REPLY_INTERVAL).await;
            match nodes.take_reply(&self.key).await {
                Ok(Some(reply)) => return read_reply(&reply),
                Ok(None) => {}
                Err(error) => return Attempt::Unknown(error.to_string()),
            }
        }
        Attempt::Unknown("it does not read its inbox".into())
    }

    /// Another node for a session that this one should not load because it is being drained.
    async fn instead_of_this(&self) -> Option<NodeAddress> {
        if !self.cluster.nodes.draining() || self.runtime.shared().is_live(self.session) {
            return None;
        }
        let this = self.cluster.nodes.this();
        let takes = |node: &NodeStatus| {
            node.alive && !node.draining && node.advertise.is_some() && node.name != this.name
        };
        let nodes = self.cluster.nodes.list().await.ok()?;
        let NodeStatus { name, advertise, .. } = nodes.into_iter().find(takes)?;
        Some(NodeAddress { name, advertise })
    }

    /// True if the store considers a node dead.
    async fn is_dead(&self, node: &NodeAddress) -> bool {
        let nodes = self.cluster.nodes.list().await;
        let alive = |known: &NodeStatus| known.name == node.name && known.alive;
        nodes.is_ok_and(|nodes| !nodes.iter().any(alive))
    }

    /// The result of a request that may have been executed before: an existing message is found by
    /// its key, and a missing session counts as deleted.
    async fn completed(&self, answer: Result<Done, Error>, action: &Action) -> Result<Done, Error> {
        match (answer, action) {
            (Err(Error::NotFound(_)), Action::Remove) if self.sent => Ok(Done::Removed),
            (Ok(Done::Receipt(receipt)), _) if self.sent && receipt.records.is_empty() => {
                let Some(key) = action.message_key() else { return Ok(Done::Receipt(receipt)) };
                Ok(Done::Receipt(self.receipt_of(key).await?))
            }
            (answer, _) => answer,
        }
    }

    /// The events of the message with this key.
    async fn receipt_of(&self, key: &str) -> Result<Receipt, Error> {
        let journal = &self.runtime.deps().journal;
        let (mut after, mut records) = (0, Vec::new());
        let mut turn: Option<TurnId> = None;
        loop {
            let page = journal.read(self.session, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = last.seq;
            for record in page {
                if is_of(&record, key, turn.as_ref()) {
                    turn = turn.or_else(|| turn_of(&record.event));
                    records.push(Arc::new(record));
                }
            }
        }
        Ok(Receipt { session: self.session.clone(), records })
    }
}

fn is_of(record: &Record, key: &str, turn: Option<&TurnId>) -> bool {
    match &record.event {
        Event::MessageAdded { options, .. } => options.key.as_deref() == Some(key),
        Event::TurnStarted { turn: started, attempt: 1, .. } => Some(started) == turn,
        _ => false,
    }
}

fn turn_of(event: &Event) -> Option<TurnId> {
    match event {
        Event::MessageAdded { turn, .. } => Some(turn.clone()),
        _ => None,
    }
}

fn read_reply(reply: &[u8]) -> Attempt {
    match Reply::decode(reply) {
        Ok(reply) => answered(reply),
        Err(error) => Attempt::Unknown(format!("its reply cannot be read: {error}")),
    }
}

fn answered(reply: Reply) -> Attempt {
    match reply {
        Reply::Receipt { session, records } => {
            let record = |(seq, at, event)| Arc::new(Record { seq, at, event });
            let records = records.into_iter().map(record).collect();
            Attempt::Answered(Ok(Done::Receipt(Receipt { session, records })))
        }
        Reply::Removed => Attempt::Answered(Ok(Done::Removed)),
        Reply::NotOwner => Attempt::Nothing,
        Reply::Closing => Attempt::Unknown("it shuts down".into()),
        Reply::Version(other) => {
            let why =
                format!("the session's node has version {other}; drain it, or upgrade this one");
            Attempt::Answered(Err(StorageError::Unavailable(why).into()))
        }
        Reply::Failed(failure) => Attempt::Answered(Err(failure.into())),
    }
}

fn unknown(why: &str) -> Error {
    let why =
        format!("the session's node gave no answer ({why}); whether it did this is not known");
    StorageError::Unavailable(why).into()
}
