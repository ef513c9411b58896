//! The other nodes, and commands between them through the database.

use quintet_kernel::id::SessionId;
use quintet_kernel::port::{
    BoxFuture, Inbox, InboxEntry, NodeAddress, NodeStatus, Nodes, StorageError, Wake,
};

use super::node::{ALIVE, HAS_WORKSPACE};
use super::{Store, from_sql, to_sql, trouble};

impl Nodes for Store {
    fn this(&self) -> NodeAddress {
        NodeAddress { name: self.node.name.clone(), advertise: self.node.advertise.clone() }
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<NodeStatus>, StorageError>> {
        self.pool.run(|db| async move {
            let query = format!(
                "SELECT name, advertise, {ALIVE}, draining,
                    (SELECT count(*) FROM journals WHERE holder = nodes.incarnation AND begun),
                    (SELECT count(*) FROM journals JOIN sessions ON sessions.key = journals.key
                        WHERE holder = nodes.incarnation AND sessions.open),
                    CASE WHEN isfinite(heartbeat) THEN (1000 * extract(
                        epoch FROM clock_timestamp() - heartbeat))::bigint ELSE {NEVER} END
                 FROM nodes ORDER BY name"
            );
            let rows = db.rows(&query, &[]).await.map_err(trouble)?;
            let status = |row: &tokio_postgres::Row| NodeStatus {
                name: row.get(0),
                advertise: row.get(1),
                alive: row.get(2),
                draining: row.get(3),
                sessions: from_sql(row.get(4)),
                open_turns: from_sql(row.get(5)),
                heartbeat_age_ms: from_sql(row.get(6)),
            };
            Ok(rows.iter().map(status).collect())
        })
    }

    fn drain(&self, name: &str, draining: bool) -> BoxFuture<'_, Result<(), StorageError>> {
        let (name, node) = (name.to_owned(), std::sync::Arc::clone(&self.node));
        self.pool.run(move |db| async move {
            let update = "UPDATE nodes SET draining = $2 WHERE name = $1";
            match db.execute(update, &[&name, &draining]).await.map_err(trouble)? {
                0 => Err(StorageError::Missing(format!("node {name}"))),
                _ => {
                    if name == node.name {
                        node.note_draining(draining);
                    }
                    Ok(())
                }
            }
        })
    }

    fn draining(&self) -> bool {
        self.node.is_draining()
    }

    fn claim_open(&self, limit: usize) -> BoxFuture<'_, Result<Vec<SessionId>, StorageError>> {
        let node = std::sync::Arc::clone(&self.node);
        self.pool.run(move |db| async move {
            let claim = format!(
                "UPDATE journals SET holder = $1, epoch = nextval('epochs') WHERE session IN (
                    SELECT journals.session FROM sessions
                    JOIN journals ON journals.key = sessions.key
                    WHERE sessions.open AND {HAS_WORKSPACE} AND NOT EXISTS (
                        SELECT 1 FROM nodes WHERE nodes.incarnation = journals.holder AND {ALIVE}
                    )
                    ORDER BY sessions.updated LIMIT $4 FOR UPDATE OF journals SKIP LOCKED
                 ) RETURNING session"
            );
            let (incarnation, limit) = (node.incarnation(), to_sql(limit as u64));
            let values: super::connection::Values<'_> =
                &[&incarnation, &node.name, &node.shared, &limit];
            let rows = db.rows(&claim, values).await.map_err(trouble)?;
            Ok(rows.iter().filter_map(|row| SessionId::parse(row.get(0))).collect())
        })
    }
}

/// The heartbeat age, in milliseconds, of a node that left.
const NEVER: i64 = i64::MAX;

impl Inbox for Store {
    fn send(
        &self,
        session: &SessionId,
        key: &str,
        body: Vec<u8>,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        let (session, key, moved) = (session.clone(), key.to_owned(), self.moved.clone());
        self.pool.run(move |db| async move {
            let insert = "INSERT INTO inbox (key, session, body) VALUES ($1, $2, $3)
                ON CONFLICT (key) DO NOTHING";
            db.execute(insert, &[&key, &session.as_str(), &body]).await.map_err(trouble)?;
            // The owner reads its inbox when it is notified about one of its own sessions.
            let _ = moved.send([(session, Wake::Inbox)].into());
            Ok(())
        })
    }

    fn receive(&self) -> BoxFuture<'_, Result<Vec<InboxEntry>, StorageError>> {
        let node = std::sync::Arc::clone(&self.node);
        self.pool.run(move |db| async move {
            // A sender waits for three lease durations; older commands were abandoned and must not
            // be executed.
            let query = "SELECT inbox.key, inbox.session, inbox.body FROM inbox
                JOIN journals ON journals.session = inbox.session
                JOIN nodes ON nodes.incarnation = journals.holder
                WHERE reply IS NULL AND journals.holder = $1
                    AND inbox.sent > clock_timestamp() - 4 * nodes.lease
                ORDER BY number";
            let rows = db.rows(query, &[&node.incarnation()]).await.map_err(trouble)?;
            let entry = |row: &tokio_postgres::Row| {
                let session = SessionId::parse(row.get(1))?;
                Some(InboxEntry { key: row.get(0), session, body: row.get(2) })
            };
            Ok(rows.iter().filter_map(entry).collect())
        })
    }

    fn reply(&self, key: &str, body: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>> {
        let key = key.to_owned();
        self.pool.run(move |db| async move {
            let update = "UPDATE inbox SET reply = $2 WHERE key = $1 AND reply IS NULL";
            db.execute(update, &[&key, &body]).await.map(drop).map_err(trouble)
        })
    }

    fn take_reply(&self, key: &str) -> BoxFuture<'_, Result<Option<Vec<u8>>, StorageError>> {
        let key = key.to_owned();
        self.pool.run(move |db| async move {
            let query = "SELECT reply FROM inbox WHERE key = $1 AND reply IS NOT NULL";
            let row = db.row(query, &[&key]).await.map_err(trouble)?;
            Ok(row.map(|row| row.get(0)))
        })
    }
}
