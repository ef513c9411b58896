//! Vectors of messages, computed in the background. Output of tools has none.

use std::time::Duration;

use quintet_kernel::port::{Embedder, StorageError};
use rusqlite::{Connection, TransactionBehavior, params};
use tokio::time::sleep;

use super::MessageIndex;
use crate::{meaning, vectors};

/// How long messages are gathered before they are embedded: the model is not loaded for each of them.
const GATHER_INTERVAL: Duration = Duration::from_secs(60);

/// The most messages that have vectors, the newest. The others are found by words.
const VECTORS_LIMIT: i64 = 50_000;

/// A message without a vector.
struct Unembedded {
    id: i64,
    text: String,
}

/// Computes vectors of what is there and of what is added.
pub(super) async fn run(index: &MessageIndex, embedder: &dyn Embedder) {
    loop {
        if embedder.ready().is_ok()
            && let Err(reason) = catch_up(index, embedder).await
        {
            tracing::warn!(%reason, "vectors of messages are missing");
        }
        index.shared.added.notified().await;
        sleep(GATHER_INTERVAL).await;
    }
}

/// Computes the vectors that are missing, those of the newest messages first.
async fn catch_up(index: &MessageIndex, embedder: &dyn Embedder) -> Result<(), String> {
    let said = |error: StorageError| error.to_string();
    let space = embedder.space().version();
    let version = space.clone();
    index.write(move |db| prepare(db, &version)).await.map_err(said)?;
    loop {
        let pending = index.write(|db| pending(db)).await.map_err(said)?;
        if pending.is_empty() {
            return index.write(|db| trim(db, "vectors")).await.map_err(said);
        }
        let texts = pending.iter().map(|message| message.text.clone()).collect();
        let vectors = meaning::batch(embedder, texts).await.map_err(|error| error.to_string())?;
        let version = space.clone();
        index.write(move |db| store(db, &version, &pending, &vectors)).await.map_err(said)?;
    }
}

/// In a new space every message is to be embedded again.
fn prepare(db: &mut Connection, space: &str) -> rusqlite::Result<()> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if vectors::use_space(&change, space)? {
        change.execute(
            "INSERT OR IGNORE INTO pending
             SELECT id FROM messages WHERE role IN ('user', 'assistant') ORDER BY id DESC LIMIT ?1",
            [VECTORS_LIMIT],
        )?;
    }
    trim(&change, "pending")?;
    change.commit()
}

/// Leaves the newest rows of a table alone and deletes the rest.
fn trim(db: &Connection, table: &str) -> rusqlite::Result<()> {
    let span = format!(
        "SELECT coalesce((SELECT max(id) FROM {table}) - (SELECT min(id) FROM {table}), 0)"
    );
    if db.query_row(&span, [], |row| row.get::<_, i64>(0))? < VECTORS_LIMIT {
        return Ok(());
    }
    let query = format!(
        "DELETE FROM {table}
         WHERE id <= (SELECT id FROM {table} ORDER BY id DESC LIMIT 1 OFFSET ?1)"
    );
    db.execute(&query, [VECTORS_LIMIT])?;
    Ok(())
}

fn pending(db: &Connection) -> rusqlite::Result<Vec<Unembedded>> {
    let mut pending = db.prepare_cached(
        "SELECT id, text FROM pending JOIN messages USING (id) ORDER BY id DESC LIMIT ?1",
    )?;
    let batch = i64::try_from(meaning::BATCH).unwrap_or(i64::MAX);
    let messages =
        pending.query_map([batch], |row| Ok(Unembedded { id: row.get(0)?, text: row.get(1)? }))?;
    messages.collect()
}

/// Stores vectors, of messages that are still there.
fn store(
    db: &mut Connection,
    space: &str,
    messages: &[Unembedded],
    vectors: &[Vec<f32>],
) -> rusqlite::Result<()> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    vectors::use_space(&change, space)?;
    for (Unembedded { id, .. }, vector) in messages.iter().zip(vectors) {
        let done = change.execute("DELETE FROM pending WHERE id = ?1", params![id])?;
        if done > 0 {
            vectors::put(&change, *id, &vectors::to_bytes(vector))?;
        }
    }
    change.commit()
}
