//! Notices of what other nodes append and erase: `NOTIFY` after each group commit, and polling.
//!
//! `NOTIFY` holds a lock of the whole database until its transaction ends, so it is sent after the
//! commit, in its own transaction that does not wait for a disk.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::event::Seq;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{BoxFuture, Wake, Wakes};
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_postgres::{AsyncMessage, Error};

use super::connection::Connection;
use super::from_sql;
use super::node::Node;
use super::url::Target;

/// Sessions and what was done with them.
pub(super) type Moved = HashMap<SessionId, Wake>;

/// Notices that a slow receiver may lag behind; it learns the rest with the next poll.
const NOTICES_CAPACITY: usize = 1024;
/// How often journals are polled, in case a notice was lost.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const RECONNECT_INTERVAL: Duration = Duration::from_millis(250);
/// Maximum length of a notice, as defined by the server.
const PAYLOAD_LIMIT: usize = 7900;
/// Words in place of a sequence number.
const INBOX: &str = "inbox";
const ERASED: &str = "erased";

/// The content of one notice.
pub(super) type Notice = Arc<Vec<(SessionId, Wake)>>;

/// Sends and receives notices.
pub(super) struct Notices {
    target: Target,
    node: Arc<Node>,
    received: broadcast::Sender<Notice>,
    /// The heads of other nodes' journals at the last poll.
    known: HashMap<SessionId, Seq>,
}

impl Notices {
    pub(super) fn new(target: Target, node: Arc<Node>) -> Self {
        let (received, _) = broadcast::channel(NOTICES_CAPACITY);
        Self { target, node, received, known: HashMap::new() }
    }

    pub(super) fn sender(&self) -> broadcast::Sender<Notice> {
        self.received.clone()
    }

    /// Runs until the store is closed.
    pub(super) async fn run(mut self, mut moved: mpsc::UnboundedReceiver<Moved>) {
        loop {
            match self.connected(&mut moved).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(
                        error = super::reason(&error),
                        "could not receive notices from other nodes"
                    );
                }
            }
            sleep(RECONNECT_INTERVAL).await;
        }
    }

    /// Serves one connection; returns when the store is closed.
    async fn connected(&mut self, moved: &mut mpsc::UnboundedReceiver<Moved>) -> Result<(), Error> {
        let (client, mut traffic) = self.target.config.connect(self.target.tls.clone()).await?;
        let (notices, mut received) = mpsc::unbounded_channel();
        let mut driver = JoinSet::new();
        driver.spawn(async move {
            while let Some(Ok(message)) = poll_fn(|context| traffic.poll_message(context)).await {
                if let AsyncMessage::Notification(notice) = message {
                    // There is no receiver once the connection is abandoned.
                    let _ = notices.send(notice);
                }
            }
        });
        let db = Connection::new(client);
        db.batch("SET synchronous_commit = off").await?;
        let row = db.row("SELECT 'quintet_' || current_schema(), pg_backend_pid()", &[]).await?;
        let (channel, own): (String, i32) =
            row.map(|row| (row.get(0), row.get(1))).unwrap_or_default();
        db.batch(&format!("LISTEN \"{}\"", channel.replace('"', "\"\""))).await?;
        let mut look = interval(POLL_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                notice = received.recv() => match notice {
                    Some(notice) if notice.process_id() == own => {}
                    Some(notice) => self.publish(parse(notice.payload())),
                    // The next query reports the error.
                    None => look.reset_immediately(),
                },
                sent = moved.recv() => {
                    let Some(mut sent) = sent else { return Ok(()) };
                    while let Ok(more) = moved.try_recv() {
                        sent.extend(more);
                    }
                    for payload in payloads(&sent) {
                        db.execute("SELECT pg_notify($1, $2)", &[&channel, &payload]).await?;
                    }
                }
                _ = look.tick() => {
                    let found = self.look(&db).await?;
                    self.publish(found);
                }
            }
        }
    }

    /// The sessions of other nodes with new events since the last poll.
    async fn look(&mut self, db: &Connection) -> Result<Vec<(SessionId, Wake)>, Error> {
        let query = "SELECT session, head FROM journals
            WHERE holder IS NOT NULL AND holder <> $1 AND begun";
        let rows = db.rows(query, &[&self.node.incarnation()]).await?;
        let session =
            |row: &tokio_postgres::Row| Some((SessionId::parse(row.get(0))?, from_sql(row.get(1))));
        let found: HashMap<SessionId, Seq> = rows.iter().filter_map(session).collect();
        let moved = |(session, head): &(&SessionId, &Seq)| self.known.get(*session) != Some(*head);
        let moved = found.iter().filter(moved).map(|(id, head)| (id.clone(), Wake::Moved(*head)));
        let moved = moved.collect();
        self.known = found;
        Ok(moved)
    }

    fn publish(&self, moved: Vec<(SessionId, Wake)>) {
        if !moved.is_empty() {
            // There may be no receiver.
            let _ = self.received.send(Arc::new(moved));
        }
    }
}

/// Encodes sessions and their changes in as few notices as possible.
fn payloads(moved: &Moved) -> Vec<String> {
    let mut payloads = vec![String::new()];
    for (session, wake) in moved {
        let word = match wake {
            Wake::Moved(head) => format!("{session} {head} "),
            Wake::Inbox => format!("{session} {INBOX} "),
            Wake::Erased => format!("{session} {ERASED} "),
        };
        let last = payloads.last_mut().expect("there is one");
        if last.len() + word.len() > PAYLOAD_LIMIT {
            payloads.push(word)
        } else {
            last.push_str(&word)
        }
    }
    payloads.retain(|payload| !payload.is_empty());
    payloads
}

fn parse(payload: &str) -> Vec<(SessionId, Wake)> {
    let words: Vec<&str> = payload.split_whitespace().collect();
    let wake = |word: &str| match word {
        INBOX => Some(Wake::Inbox),
        ERASED => Some(Wake::Erased),
        head => head.parse().ok().map(Wake::Moved),
    };
    let pair = |pair: &[&str]| Some((SessionId::parse(pair.first()?)?, wake(pair.get(1)?)?));
    words.chunks(2).filter_map(pair).collect()
}

/// A receiver of notices.
pub(super) struct Subscription(pub(super) broadcast::Receiver<Notice>);

impl Wakes for Subscription {
    fn next(&mut self) -> BoxFuture<'_, Option<Vec<(SessionId, Wake)>>> {
        Box::pin(async {
            loop {
                match self.0.recv().await {
                    Ok(notice) => return Some((*notice).clone()),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_survive_encoding() {
        let id = |number: usize| SessionId::parse(&format!("session-{number}")).unwrap();
        let wake = |number: usize| match number % 3 {
            0 => Wake::Moved(number as Seq),
            1 => Wake::Inbox,
            _ => Wake::Erased,
        };
        let moved: Moved = (0..1000).map(|number| (id(number), wake(number))).collect();
        let payloads = payloads(&moved);
        assert!(payloads.iter().all(|payload| payload.len() <= PAYLOAD_LIMIT));
        let received: Moved = payloads.iter().flat_map(|payload| parse(payload)).collect();
        assert_eq!(received, moved);
        assert_eq!(parse("a b c"), []);
    }
}
