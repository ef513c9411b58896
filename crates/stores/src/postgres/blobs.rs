//! Blobs by their hash, and uploads by name. Both are in the database, except for blobs that are
//! too long for it, which are objects.

use std::io::Read as _;
use std::sync::Arc;

use quintet_kernel::id::BlobId;
use quintet_kernel::port::{BlobBody, Blobs, BoxFuture, StorageError, UploadWriter, Uploads};

use super::connection::{Connection, Pool};
use super::{Store, from_sql, to_sql, trouble};
use crate::blobs::{blob_id, blocking, read_body, unavailable};
use crate::uploads::{Spool, is_safe};

/// Maximum length of a blob, in bytes: it is held in memory here and by the server.
const BLOB_LIMIT: usize = 256 * 1024 * 1024;
/// Bytes of an upload per row.
const PART_BYTES: usize = 1024 * 1024;

impl Blobs for Store {
    fn put(&self, content: Vec<u8>) -> BoxFuture<'_, Result<BlobId, StorageError>> {
        Box::pin(async move {
            let mut blobs = self.put_all(vec![BlobBody::Bytes(content)]).await?;
            blobs.pop().ok_or_else(|| unavailable("no blob was kept"))
        })
    }

    fn put_all(&self, contents: Vec<BlobBody>) -> BoxFuture<'_, Result<Vec<BlobId>, StorageError>> {
        Box::pin(async move {
            let mut blobs = Vec::with_capacity(contents.len());
            for content in contents {
                if let BlobBody::Hash(blob) = content {
                    blobs.push(blob);
                    continue;
                }
                let content = blocking(|| read_body(content)).await?.unwrap_or_default();
                blobs.push(self.put_content(content).await?);
            }
            Ok(blobs)
        })
    }

    fn get(&self, blob: &BlobId) -> BoxFuture<'_, Result<Vec<u8>, StorageError>> {
        let blob = blob.clone();
        Box::pin(async move {
            let content = match self.place(&blob).await? {
                Place::Row(content) => content,
                Place::Object(name) => self.object(&blob, &name).await?,
            };
            if blob_id(&content) != blob {
                return Err(StorageError::Damaged(format!("blob {blob}")));
            }
            Ok(content)
        })
    }

    /// No blob is in a file of this machine, so the content is always returned.
    fn body(&self, blob: &BlobId, _: u64) -> BoxFuture<'_, Result<BlobBody, StorageError>> {
        let blob = blob.clone();
        Box::pin(async move { self.get(&blob).await.map(BlobBody::Bytes) })
    }
}

impl Store {
    async fn put_content(&self, content: Vec<u8>) -> Result<BlobId, StorageError> {
        if content.len() > BLOB_LIMIT {
            let (size, limit) = (content.len(), BLOB_LIMIT);
            return Err(unavailable(format!(
                "{size} bytes are more than a blob may have, {limit}"
            )));
        }
        let blob = blob_id(&content);
        let objects = self.objects.clone().filter(|objects| content.len() > objects.limit);
        let (id, is_object) = (blob.clone(), objects.is_some());
        let announced = self.pool.run(move |db| async move {
            if is_kept(&db, &id).await? {
                return Ok(None);
            }
            if is_object {
                return Ok(Some((announce(&db, &id).await?, content)));
            }
            insert(&db, &id, &content).await?;
            Ok(None)
        });
        if let (Some((name, content)), Some(store)) = (announced.await?, objects) {
            store.objects.put(&name, content.into()).await?;
            self.confirm(&blob, name).await?;
        }
        Ok(blob)
    }

    /// Makes sure that a stored object is still registered, however long storing it took.
    async fn confirm(&self, blob: &BlobId, name: String) -> Result<(), StorageError> {
        let blob = blob.clone();
        let confirmed = self.pool.run(|db| async move {
            let young = "UPDATE blobs SET used = now() WHERE id = $1 AND object = $2";
            match db.execute(young, &[&blob.as_str(), &name]).await.map_err(trouble)? {
                0 => Err(unavailable(format!("blob {blob} was deleted while it was stored"))),
                _ => Ok(()),
            }
        });
        confirmed.await
    }

    async fn place(&self, blob: &BlobId) -> Result<Place, StorageError> {
        let blob = blob.clone();
        let found = self.pool.run(|db| async move {
            let query = "SELECT body, object FROM blobs WHERE id = $1";
            let row = db.row(query, &[&blob.as_str()]).await.map_err(trouble)?;
            let row = row.ok_or_else(|| missing(&blob))?;
            let object = || row.get::<_, Option<String>>(1).map(Place::Object);
            row.get::<_, Option<Vec<u8>>>(0)
                .map(Place::Row)
                .or_else(object)
                .ok_or_else(|| missing(&blob))
        });
        found.await
    }

    async fn object(&self, blob: &BlobId, name: &str) -> Result<Vec<u8>, StorageError> {
        let Some(store) = &self.objects else {
            let reason = "is in an object store: set store.blobs as on the other nodes";
            return Err(unavailable(format!("blob {blob} {reason}")));
        };
        store.objects.get(name).await.map_err(|error| match error {
            StorageError::Missing(_) => missing(blob),
            other => other,
        })
    }
}

/// Where a blob is stored.
enum Place {
    /// In the database: the content.
    Row(Vec<u8>),
    /// In the object of this name.
    Object(String),
}

fn missing(blob: &BlobId) -> StorageError {
    StorageError::Missing(format!("blob {blob}"))
}

/// Marks a blob as recently used, if the database has it undamaged; returns whether it has.
async fn is_kept(db: &Connection, blob: &BlobId) -> Result<bool, StorageError> {
    let known = "UPDATE blobs SET used = now()
        WHERE id = $1 AND encode(sha256(body), 'hex') = $1";
    Ok(db.execute(known, &[&blob.as_str()]).await.map_err(trouble)? > 0)
}

async fn insert(db: &Connection, blob: &BlobId, content: &[u8]) -> Result<(), StorageError> {
    let insert = "INSERT INTO blobs (id, used, body) VALUES ($1, now(), $2)
        ON CONFLICT (id) DO UPDATE SET used = now(), body = excluded.body";
    db.execute(insert, &[&blob.as_str(), &content]).await.map(drop).map_err(trouble)
}

/// Registers an object before it is stored, so that it is known even if that fails; returns its
/// name.
async fn announce(db: &Connection, blob: &BlobId) -> Result<String, StorageError> {
    let note = "INSERT INTO blobs (id, used, object)
        VALUES ($1, now(), $1 || '-' || nextval('object_names'))
        ON CONFLICT (id) DO UPDATE SET used = now(),
            object = coalesce(blobs.object, excluded.object),
            body = CASE WHEN encode(sha256(blobs.body), 'hex') = blobs.id THEN blobs.body END
        RETURNING object";
    let row = db.row(note, &[&blob.as_str()]).await.map_err(trouble)?;
    row.map(|row| row.get(0)).ok_or_else(|| unavailable("no object was noted"))
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

/// An incomplete upload, in a file of this machine.
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
