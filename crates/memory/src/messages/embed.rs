//! Computes the vectors of messages in the background. Output of tools has none.

use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::port::{Embedder, StorageError};
use rusqlite::{Connection, TransactionBehavior};
use tokio::time::sleep;

use super::MessageIndex;
use crate::{embedding, vectors};

/// How long new messages are collected before they are embedded, so that the model is loaded once.
const GATHER_INTERVAL: Duration = Duration::from_secs(60);

/// The messages with vectors.
const EMBEDDED: &str = "SELECT id FROM messages WHERE role IN ('user', 'assistant')";

/// Computes the vectors of all messages, and of new ones as they are added.
pub(super) async fn run(index: &MessageIndex, embedder: &dyn Embedder) {
    loop {
        if embedder.ready().is_ok()
            && let Err(reason) = catch_up(index, embedder).await
        {
            tracing::warn!(%reason, "could not compute vectors of messages; they are searched by words alone");
        }
        index.shared.added.notified().await;
        sleep(GATHER_INTERVAL).await;
    }
}

/// Computes the missing vectors.
async fn catch_up(index: &MessageIndex, embedder: &dyn Embedder) -> Result<(), String> {
    let to_text = |error: StorageError| error.to_string();
    loop {
        let space = embedder.space().version();
        let pending = index.write(move |db| pending(db, &space)).await.map_err(to_text)?;
        if pending.is_empty() {
            return index.write(|db| vectors::trim_vectors(db)).await.map_err(to_text);
        }
        let (ids, texts): (Vec<i64>, Vec<String>) = pending.into_iter().unzip();
        let batch = embedding::batch(embedder, texts).await.map_err(|error| error.to_string())?;
        let batch = Arc::new(batch);
        let (space, computed) = (embedder.space().version(), Arc::clone(&batch));
        let store = move |db: &mut Connection| {
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            vectors::use_space(&change, &space, EMBEDDED)?;
            vectors::put_all(&change, ids.into_iter().zip(&computed.vectors))?;
            change.commit()
        };
        index.write(store).await.map_err(to_text)?;
        batch.pause().await;
    }
}

/// The next messages without a vector.
fn pending(db: &mut Connection, space: &str) -> rusqlite::Result<Vec<(i64, String)>> {
    let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    vectors::use_space(&change, space, EMBEDDED)?;
    let mut messages = Vec::new();
    for id in vectors::pending(&change)? {
        let mut text = change.prepare_cached("SELECT text FROM messages WHERE id = ?1")?;
        messages.push((id, text.query_row([id], |row| row.get(0))?));
    }
    change.commit()?;
    Ok(messages)
}
