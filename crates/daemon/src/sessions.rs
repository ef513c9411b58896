//! `quintet sessions find`: searches the messages of all sessions.

mod indexer;
mod show;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use quintet_dialects::change_feed::Change;
use quintet_dialects::projection::{Projection as _, ProjectionError};
use quintet_kernel::SessionId;
use quintet_kernel::port::{
    ERASED_SPACE, Embedder, Preferences, SearchError, SessionQuery, SessionSearch as _,
    StorageError,
};
use quintet_memory::MessageIndex;
use quintet_stores::DataDir;

use crate::cli::{Find, Sessions};
use crate::storage::Storage;
use crate::{options, senses};

pub(crate) use indexer::Indexer;

/// The file of the index in the data directory.
const INDEX_FILE: &str = "search.db";

/// Number of sessions from which progress is shown.
const PROGRESS_SESSIONS_MINIMUM: usize = 100;

pub(crate) fn main(verb: Sessions) -> Result<()> {
    let Sessions::Find(find) = verb;
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    threads.block_on(run(find))
}

/// The index of the messages in a data directory.
pub(crate) fn index(data_dir: &Path, embedder: Option<Arc<dyn Embedder>>) -> MessageIndex {
    MessageIndex::new(data_dir.join(INDEX_FILE), embedder)
}

/// Removes the sessions in the list of erased ones from the index.
pub(crate) async fn remove_erased(
    index: &MessageIndex,
    notes: &dyn Preferences,
) -> Result<(), StorageError> {
    let names = notes.names(ERASED_SPACE).await?;
    for session in names.iter().filter_map(|name| SessionId::parse(name)) {
        index.remove(&session).await?;
    }
    Ok(())
}

async fn run(find: Find) -> Result<()> {
    let options = options::read_closed(&find.flags)?;
    let data_dir = &options.data_dir;
    if !data_dir.is_dir() {
        bail!("there are no sessions: {} is not there", data_dir.display());
    }
    let index = index(data_dir, senses::build(&options).embedder_if_on());
    match DataDir::open(data_dir) {
        Ok(dir) => {
            // The search needs no exclusive access to the folder.
            drop(dir);
            catch_up(&Storage::open_for_command(&options)?, &index).await?;
        }
        // The running daemon updates the index.
        Err(quintet_stores::Error::InUse(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let query = SessionQuery { text: find.words.join(" "), limit: Some(find.limit.into()) };
    let found = match index.search(query).await {
        Err(SearchError::Storage(_)) if !data_dir.join(INDEX_FILE).exists() => {
            bail!("there is no search index yet: the daemon is making it; try again in a moment")
        }
        found => found?,
    };
    if let Some(reason) = found.method.reason().filter(|_| !find.json) {
        eprintln!("searched by words alone: {reason}");
    }
    let text = if find.json { show::json(&found) } else { show::text(&found) };
    Ok(write!(std::io::stdout(), "{text}")?)
}

/// Updates the index, which only this command does while the daemon is not running.
async fn catch_up(storage: &Storage, index: &MessageIndex) -> Result<()> {
    remove_erased(index, &*storage.preferences).await?;
    let (journal, sessions) = (storage.journal.clone(), storage.sessions.clone());
    let mut indexer = Indexer::open(index.clone(), journal, sessions).await?;
    let mut behind = indexer.erased().await?;
    for summary in storage.sessions.recent(None, usize::MAX).await? {
        if !indexer.has(&summary.id, summary.head).await {
            behind.push(summary.id);
        }
    }
    if behind.len() >= PROGRESS_SESSIONS_MINIMUM {
        eprintln!("adding {} sessions to the search index", behind.len());
    }
    for session in behind {
        match indexer.update(&session, Change::Head(0)).await {
            // An unreadable session does not prevent finding others.
            Err(error @ ProjectionError::Storage(StorageError::Damaged(_))) => {
                eprintln!("session {session} is left out: {error}");
            }
            done => done?,
        }
    }
    Ok(())
}
