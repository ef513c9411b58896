//! Blobs that are too long for the database: in a folder that all nodes can access, or in a bucket
//! of an S3-compatible store.
//!
//! An object never changes. The database lists all objects, so that nothing here has to be listed.

mod bucket;
mod folder;
mod location;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use quintet_kernel::port::{BoxFuture, StorageError};

use crate::Error;
use bucket::BucketObjects;
use folder::FolderObjects;

pub use location::{BucketLocation, Location};

/// How long blobs are stored.
#[derive(Clone, Debug)]
pub struct ObjectSettings {
    /// The location of the objects.
    pub location: Location,
    /// The access to a bucket.
    pub credentials: Option<Credentials>,
    /// Longer content, in bytes, is stored as an object.
    pub limit: usize,
}

/// The access to a bucket.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name of the key.
    pub access_key: String,
    /// The secret with which requests are signed.
    pub secret_key: String,
    /// The token of temporary credentials.
    pub session_token: Option<String>,
}

/// Shows no secret.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

/// Storage for objects.
pub(crate) trait Objects: Send + Sync + fmt::Debug {
    /// Stores an object, unless it exists; durable when the future resolves.
    fn put(&self, name: &str, content: Bytes) -> BoxFuture<'_, Result<(), StorageError>>;
    /// Reads an object without verifying it.
    fn get(&self, name: &str) -> BoxFuture<'_, Result<Vec<u8>, StorageError>>;
    /// Deletes an object, if it exists.
    fn delete(&self, name: &str) -> BoxFuture<'_, Result<(), StorageError>>;
}

/// The objects, and the size from which content is stored as one.
#[derive(Clone, Debug)]
pub(crate) struct ObjectStore {
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) limit: usize,
}

impl ObjectStore {
    /// Opens the object store. Fails if its folder cannot be created, or a bucket has no
    /// credentials. Does not connect to a bucket.
    pub(crate) fn open(settings: &ObjectSettings) -> Result<Self, Error> {
        let ObjectSettings { location, credentials, limit } = settings;
        let objects: Arc<dyn Objects> = match location {
            Location::Folder(folder) => Arc::new(FolderObjects::open(folder)?),
            Location::Bucket(bucket) => {
                let opened = BucketObjects::open(bucket, credentials.as_ref());
                let server = location.to_string();
                Arc::new(opened.map_err(|reason| Error::Server { server, reason })?)
            }
        };
        Ok(Self { objects, limit: *limit })
    }
}

/// Writes, reads and deletes an object.
///
/// # Errors
/// Fails if one of these operations fails.
pub async fn probe(settings: &ObjectSettings) -> Result<(), Error> {
    let objects = ObjectStore::open(settings)?.objects;
    let content = format!("written by quintet doctor, process {}", std::process::id());
    let name = format!("doctor-{}", std::process::id());
    let tried = async {
        objects.put(&name, Bytes::from(content.clone())).await?;
        let read = objects.get(&name).await?;
        objects.delete(&name).await?;
        if read == content.as_bytes() {
            Ok(())
        } else {
            Err(StorageError::Damaged(format!("object {name}")))
        }
    };
    let server = settings.location.to_string();
    tried.await.map_err(|error: StorageError| Error::Server { server, reason: error.to_string() })
}
