//! `quintet export`: writes every session as a folder of plain files, directly from the journal.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use quintet_dialects::SessionTree;
use quintet_runtime::Archive;

use crate::assemble::{rules, toolbox};
use crate::cli::Flags;
use crate::options;
use crate::senses;
use crate::storage::Storage;

/// Writes the folders. Open turns are written as they are and not continued.
pub(crate) fn main(flags: &Flags, to: &Path) -> Result<()> {
    let options = options::read(flags)?;
    if options.store.is_none() && !options.data_dir.is_dir() {
        bail!("there are no sessions: {} is not there", options.data_dir.display());
    }
    let storage = Storage::open_for_command(&options)?;
    let toolbox = toolbox(&options, &senses::build(&options), None);
    let rules = Arc::new(rules(&options, &toolbox));
    let archive = Arc::new(Archive::new(storage.journal, storage.sessions, rules));
    let tree = SessionTree::new(to.into(), storage.blobs, archive.clone(), archive);
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let count = threads.block_on(tree.export())?;
    writeln!(std::io::stdout(), "{count} sessions written to {}", to.display())?;
    Ok(())
}
