//! Which servers of workspaces a person allowed, by what exactly they are.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// The file in the data directory.
const FILE: &str = "mcp-allowed.json";

/// The servers that a person allowed. A definition that changes in any way is another one.
#[derive(Clone, Debug)]
pub struct Allowed {
    path: PathBuf,
}

impl Allowed {
    /// The servers that were allowed in a data directory.
    pub fn new(data_dir: &Path) -> Self {
        Self { path: data_dir.join(FILE) }
    }

    /// The digests that are allowed. A file that is not there, or is damaged, allows nothing.
    pub fn read(&self) -> BTreeSet<String> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    /// Adds to what is allowed; durable on return. Fails if the file cannot be written.
    pub fn add(&self, digests: impl IntoIterator<Item = String>) -> io::Result<()> {
        let mut all = self.read();
        all.extend(digests);
        self.write(&all)
    }

    /// Takes digests out of what is allowed; durable on return. Fails if the file cannot be written.
    pub fn remove(&self, digests: &[String]) -> io::Result<()> {
        let mut all = self.read();
        all.retain(|digest| !digests.contains(digest));
        self.write(&all)
    }

    fn write(&self, all: &BTreeSet<String>) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&serde_json::to_vec_pretty(all)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }
}
