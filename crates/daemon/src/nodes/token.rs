//! The secret by which nodes authenticate to each other: from the configuration, or created once and stored in
//! the shared store. A copy in the data directory lets `quintet nodes` use the local daemon.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result};
use quintet_kernel::port::Preferences;
use serde_json::Value;

/// The settings space of the secret.
const SPACE: &str = "nodes";
const NAME: &str = "token";
/// The copy in the data directory.
const FILE: &str = "node-token";
/// Length of a secret, in random bytes.
const LENGTH: usize = 32;

/// The nodes' secret, once it is known. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct NodeToken {
    secret: Arc<OnceLock<String>>,
}

impl NodeToken {
    pub(super) fn get(&self) -> Option<&str> {
        self.secret.get().map(String::as_str)
    }

    /// Determines the secret: the configured one, or that of the store, which the first node
    /// creates.
    pub(crate) async fn resolve(
        &self,
        configured: Option<&str>,
        store: &dyn Preferences,
        data_dir: &Path,
    ) -> Result<String> {
        let secret = match configured {
            Some(token) => token.to_owned(),
            None => shared(store).await?,
        };
        let kept = write_file(&data_dir.join(FILE), &secret);
        kept.with_context(|| format!("{}", data_dir.join(FILE).display()))?;
        Ok(self.secret.get_or_init(|| secret).clone())
    }

    /// The secret that the daemon of a data directory stored.
    pub(super) fn read(data_dir: &Path) -> Result<Self> {
        let file = data_dir.join(FILE);
        let secret = std::fs::read_to_string(&file);
        let secret = secret.with_context(|| {
            format!(
                "{}: no node of a shared store was started with this configuration",
                file.display()
            )
        })?;
        Ok(Self { secret: Arc::new(OnceLock::from(secret.trim().to_owned())) })
    }
}

async fn shared(store: &dyn Preferences) -> Result<String> {
    let mut bytes = [0; LENGTH];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
        .ok()
        .context("the system has no randomness")?;
    let fresh: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    store.replace(SPACE, NAME, None, Value::String(fresh)).await?;
    let kept = store.preference(SPACE, NAME).await?;
    let kept = kept.as_ref().and_then(Value::as_str);
    Ok(kept.context("the nodes' token in the store is not text")?.to_owned())
}

fn write_file(file: &Path, secret: &str) -> std::io::Result<()> {
    // An existing file would keep its permissions, which may be wrong.
    let fresh = file.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(&fresh)?.write_all(secret.as_bytes())?;
    std::fs::rename(fresh, file)
}
