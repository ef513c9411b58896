//! Logins at MCP servers: one encrypted file each in the data directory, encrypted with the vault's
//! key.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use quintet_kernel::port::BoxFuture;
use quintet_tools::mcp::{LoginKey, LoginStore};
use ring::digest::{SHA256, digest};
use rustix::fs::{FlockOperation, flock};

use crate::accounts::{Vault, write_secret};

/// The folder in the data directory.
const FOLDER: &str = "mcp-logins";

/// The logins of a data directory. The daemon and `quintet mcp` use them concurrently.
#[derive(Debug)]
pub(crate) struct Logins {
    folder: PathBuf,
    vault: Arc<Vault>,
}

impl Logins {
    pub(crate) fn new(data_dir: &Path, vault: Arc<Vault>) -> Self {
        Self { folder: data_dir.join(FOLDER), vault }
    }

    fn file(&self, key: &LoginKey) -> PathBuf {
        let name = digest(&SHA256, purpose(key).as_bytes());
        let name: String = name.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(name)
    }
}

/// The purpose of an encrypted login. It cannot be decrypted for another one.
fn purpose(key: &LoginKey) -> String {
    ["mcp login", &key.name, &key.url].join("\n")
}

impl LoginStore for Logins {
    fn load<'a>(&'a self, key: &'a LoginKey) -> BoxFuture<'a, Result<Option<String>, String>> {
        Box::pin(async move {
            let file = self.file(key);
            let sealed = match tokio::fs::read_to_string(&file).await {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                read => read.map_err(|error| format!("{}: {error}", file.display()))?,
            };
            let opened = self.vault.open(sealed.trim_end(), &purpose(key)).await;
            opened.map(Some).map_err(|error| {
                format!("it cannot be read: {error}; log in again: quintet mcp login {}", key.name)
            })
        })
    }

    fn save<'a>(&'a self, key: &'a LoginKey, text: String) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let sealed = self.vault.seal(&text, &purpose(key)).await;
            let sealed = sealed.map_err(|error| format!("{error}; {}", error.remedy()))?;
            let (folder, file) = (self.folder.clone(), self.file(key));
            blocking(move || {
                make(&folder)?;
                write_secret(&file, &format!("{sealed}\n"))
            })
            .await
        })
    }

    fn remove<'a>(&'a self, key: &'a LoginKey) -> BoxFuture<'a, Result<bool, String>> {
        let file = self.file(key);
        Box::pin(blocking(move || match fs::remove_file(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true),
        }))
    }

    fn lock<'a>(&'a self, key: &'a LoginKey) -> BoxFuture<'a, Result<Box<dyn Send>, String>> {
        let (folder, file) = (self.folder.clone(), self.file(key).with_extension("lock"));
        Box::pin(blocking(move || {
            make(&folder)?;
            let mut options = OpenOptions::new();
            let file: File =
                options.write(true).create(true).truncate(false).mode(0o600).open(file)?;
            // Renewing takes seconds at most, so the wait is short.
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(Box::new(file) as Box<dyn Send>)
        }))
    }

    fn written(&self, key: &LoginKey) -> Option<SystemTime> {
        fs::metadata(self.file(key)).ok()?.modified().ok()
    }
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}
