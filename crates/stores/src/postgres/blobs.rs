//! Content: blobs by their hash, and uploads by name, both in the database.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, Blobs, BoxFuture, StorageError, UploadWriter, Uploads};
use tokio_postgres::Error;

use super::connection::{Connection, Pool};
use super::{Store, from_sql, to_sql, trouble};
use crate::blobs::{blob_id, blocking, read_body, unavailable};
use crate::uploads::{Spool, is_safe};

/// The longest blob, in bytes: one is held in memory here and by the server.
const BLOB_LIMIT: usize = 256 * 1024 * 1024;
/// How much of an upload is in one row.
const PART_BYTES: usize = 1024 * 1024;

impl Blobs for Store {
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>> {
        Box::pin(async move {
            let mut blobs = self.put_all(vec![BlobBody::Bytes(content)]).await?;
            blobs.pop().ok_or_else(|| unavailable("no blob was kept"))
        })
    }

    fn put_all(&self, contents: Vec<BlobBody>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>> {
        self.pool.run(|db| async move {
            let mut blobs = Vec::with_capacity(contents.len());
            for content in contents {
                if let BlobBody::Hash(blob) = content {
                    blobs.push(blob);
                    continue;
                }
                let content = blocking(|| read_body(content)).await?.unwrap_or_default();
                blobs.push(put(&db, content).await?);
            }
            Ok(blobs)
        })
    }

    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let blob = blob.clone();
        self.pool.run(|db| async move {
            let query = "SELECT body FROM blobs WHERE id = $1";
            let row = db.row(query, &[&blob.as_str()]).await.map_err(trouble)?;
            let content: Vec<u8> = row
                .map(|row| row.get(0))
                .ok_or_else(|| StorageError::Missing(format!("blob {blob}")))?;
            if blob_id(&content) != blob {
                return Err(StorageError::Damaged(format!("blob {blob}")));
            }
            Ok(content)
        })
    }

    /// Nothing is in a file here, so that all of it is given however long it is.
    fn body(&self, blob: &BlobId, _: u64) -> BoxFuture<'_, Result<BlobBody, StorageError>> {
        let blob = blob.clone();
        Box::pin(async move { self.get(&blob).await.map(BlobBody::Bytes) })
    }
}

async fn put(db: &Connection, content: Vec<u8>) -> Result<BlobId, StorageError> {
    if content.len() > BLOB_LIMIT {
        let (size, limit) = (content.len(), BLOB_LIMIT);
        return Err(unavailable(format!("{size} bytes are more than a blob may have, {limit}")));
    }
    let blob = blob_id(&content);
    // The content is sent only if it is not there, or is damaged.
    let known = "UPDATE blobs SET used = now()
        WHERE id = $1 AND encode(sha256(body), 'hex') = $1";
    if db.execute(known, &[&blob.as_str()]).await.map_err(trouble)? == 0 {
        let insert = "INSERT INTO blobs (id, used, body) VALUES ($1, now(), $2)
            ON CONFLICT (id) DO UPDATE SET used = now(), body = excluded.body";
        db.execute(insert, &[&blob.as_str(), &content]).await.map_err(trouble)?;
    }
    Ok(blob)
}

/// Deletes what nobody refers to: blobs that were neither put nor lost a reference for so long, and commands
/// between nodes that are old. Safe while other nodes put and refer: putting makes a blob young again.
pub(super) async fn collect_garbage(db: &Connection, grace: Duration) -> Result<(), Error> {
    let unused = "DELETE FROM blobs WHERE used <= now() - $1::bigint * interval '1 millisecond'
        AND NOT EXISTS (SELECT 1 FROM refs WHERE refs.blob = blobs.id)";
    let deleted = db.execute(unused, &[&to_sql(grace.as_millis() as u64)]).await?;
    if deleted > 0 {
        tracing::info!(deleted, "blobs that nobody refers to are deleted");
    }
    db.execute("DELETE FROM inbox WHERE sent < now() - interval '1 day'", &[]).await?;
    // Leases of sessions that never began, of nodes that are gone.
    let never = "DELETE FROM journals WHERE NOT begun AND NOT EXISTS (
        SELECT 1 FROM nodes WHERE nodes.incarnation = journals.holder)";
    db.execute(never, &[]).await.map(drop)
}

impl Uploads for Store {
    fn begin(&self) -> BoxFuture<'_, Result<Box<dyn UploadWriter>, StorageError>> {
        let pool = Arc::clone(&self.pool);
        Box::pin(blocking(|| {
            let spool = Spool::new(tempfile::NamedTempFile::new().map_err(unavailable)?);
            Ok(Box::new(Incoming { spool, pool }) as Box<dyn UploadWriter>)
        }))
    }

    fn part(
        &self,
        name: &str,
        from: u64,
        length: usize,
    ) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let name = name.to_owned();
        self.pool.run(move |db| async move {
            let query = "SELECT part, body FROM uploads
                WHERE name = $1 AND (part BETWEEN $2 AND $3 OR part = 0) ORDER BY part";
            let (first, until) =
                (from / PART_BYTES as u64, from.saturating_add(length as u64) / PART_BYTES as u64);
            let values: super::connection::Values<'_> = &[&name, &to_sql(first), &to_sql(until)];
            let rows = db.rows(query, values).await.map_err(trouble)?;
            if rows.is_empty() {
                return Err(StorageError::Missing(format!("file {name}")));
            }
            let parts = rows.iter().filter(|row| from_sql(row.get(0)) >= first);
            let skipped = (from - first * PART_BYTES as u64) as usize;
            let bytes = parts.flat_map(|row| row.get::<_, &[u8]>(1)).copied();
            Ok(bytes.skip(skipped).take(length).collect())
        })
    }

    fn remove(&self, name: &str) -> BoxFuture<'_, Result<(), StorageError>> {
        let name = name.to_owned();
        self.pool.run(|db| async move {
            let delete = "DELETE FROM uploads WHERE name = $1";
            db.execute(delete, &[&name]).await.map(drop).map_err(trouble)
        })
    }

    fn names(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        self.pool.run(|db| async move {
            let query = "SELECT name FROM uploads WHERE part = 0 ORDER BY name";
            let rows = db.rows(query, &[]).await.map_err(trouble)?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
    }
}

/// An upload that is not whole yet, in a file of this machine.
struct Incoming {
    spool: Spool,
    pool: Arc<Pool>,
}

impl UploadWriter for Incoming {
    fn write(&mut self, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.spool.write(bytes))
    }

    fn commit(self: Box<Self>, name: &str) -> BoxFuture<'static, Result<(), StorageError>> {
        let name = name.to_owned();
        Box::pin(async move {
            if !is_safe(&name) {
                return Err(unavailable(format!("{name:?} is no name of a file")));
            }
            let file = self.spool.into_file()?;
            self.pool
                .run(|db| async move {
                    db.batch("BEGIN").await.map_err(trouble)?;
                    let kept = keep(&db, &name, file).await;
                    let end = if kept.is_ok() { "COMMIT" } else { "ROLLBACK" };
                    db.batch(end).await.map_err(trouble)?;
                    kept
                })
                .await
        })
    }
}

async fn keep(
    db: &Connection,
    name: &str,
    file: tempfile::NamedTempFile,
) -> Result<(), StorageError> {
    db.execute("DELETE FROM uploads WHERE name = $1", &[&name]).await.map_err(trouble)?;
    let mut content = file.reopen().map_err(unavailable)?;
    let mut number = 0_i64;
    loop {
        let mut part = Vec::new();
        (content, part) = blocking(move || {
            let mut content = content;
            (&mut content).take(PART_BYTES as u64).read_to_end(&mut part).map_err(unavailable)?;
            Ok((content, part))
        })
        .await?;
        if part.is_empty() && number > 0 {
            return Ok(());
        }
        let insert = "INSERT INTO uploads (name, part, body) VALUES ($1, $2, $3)";
        db.execute(insert, &[&name, &number, &part]).await.map_err(trouble)?;
        number += 1;
    }
}
