//! Sessions at a glance, by id, by use, by workspace and by descent.

use std::path::Path;
use std::sync::Arc;

use quintet_kernel::card::Card;
use quintet_kernel::id::SessionId;
use quintet_kernel::port::{BoxFuture, Catalogue, StorageError};
use rusqlite::{Connection, params};

use super::directory::cards;
use super::{Store, append, to_sql, trouble};

impl Catalogue for Store {
    fn card(&self, session: &SessionId) -> BoxFuture<'_, Result<Option<Card>, StorageError>> {
        let id = session.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| {
            let query = "SELECT card FROM sessions WHERE id = ?1";
            Ok(cards(db, query, [id.as_str()])?.pop())
        }))
    }

    fn recent(
        &self,
        workspace: Option<&Path>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        // What is no text is no card's workspace either: cards are text.
        let workspace = workspace.map(|path| path.to_string_lossy().into_owned());
        let limit = to_sql(limit as u64);
        Box::pin(Arc::clone(&self.readers).run(move |db| match workspace {
            Some(workspace) => cards(
                db,
                "SELECT card FROM sessions WHERE workspace = ?2
                 ORDER BY updated DESC, key DESC LIMIT ?1",
                params![limit, workspace],
            ),
            None => cards(
                db,
                "SELECT card FROM sessions ORDER BY updated DESC, key DESC LIMIT ?1",
                params![limit],
            ),
        }))
    }

    fn forks(&self, session: &SessionId) -> BoxFuture<'_, Result<Vec<Card>, StorageError>> {
        let id = session.clone();
        Box::pin(Arc::clone(&self.readers).run(move |db| forks(db, &id)))
    }
}

fn forks(db: &Connection, id: &SessionId) -> Result<Vec<Card>, StorageError> {
    let Some((key, _)) = append::find(db, id).map_err(trouble)? else { return Ok(Vec::new()) };
    let query = "SELECT card FROM forks JOIN sessions ON sessions.key = forks.child
                 WHERE forks.parent = ?1 ORDER BY sessions.key";
    cards(db, query, [key])
}
