//! `quintet migrate`: copies all data from SQLite to PostgreSQL or back, and compares them
//! afterwards.

use std::io::Write as _;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use quintet_kernel::port::Nodes as _;
use quintet_stores::transfer::{Report, TransferEnd, compare, copy};
use quintet_stores::{DataDir, postgres};

use crate::cli::Migrate;
use crate::options::{self, Options};
use crate::storage;

/// Copies everything; the source stays unchanged. No daemon may use either store meanwhile.
pub(crate) fn main(migrate: &Migrate) -> Result<()> {
    let options = options::read_closed(&migrate.flags)?;
    let dir = DataDir::open(&options.data_dir)?;
    let threads = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    threads.block_on(async {
        let copied = match migrate.to.as_str() {
            "sqlite" => {
                let url = migrate.from.as_ref().or(options.store.as_ref());
                let url = url.context("name the database with --from, or set store.url")?;
                transfer(&postgres_end(&shared(&options, url).await?), &sqlite_end(&dir)?).await?
            }
            url => {
                let store = shared(&options, url).await?;
                let copied = transfer(&sqlite_end(&dir)?, &postgres_end(&store)).await?;
                if !options.node.is_named {
                    store.forget_homes().await?;
                }
                copied
            }
        };
        let Report { sessions, events, blobs, aliases, settings, installs, artifacts, runs } =
            copied;
        writeln!(
            std::io::stdout(),
            "copied and compared: {sessions} sessions with {events} events, {blobs} blobs, {aliases} \
             aliases, {settings} settings, {installs} installs, {artifacts} artifacts, {runs} runs"
        )?;
        match migrate.to.as_str() {
            "sqlite" => writeln!(std::io::stdout(), "remove store.url to use them")?,
            _ => writeln!(std::io::stdout(), "set store.url to use them")?,
        }
        Ok(())
    })
}

/// The store below the data directory.
fn sqlite_end(dir: &DataDir) -> Result<TransferEnd> {
    let store = Arc::new(dir.sqlite()?);
    Ok(TransferEnd {
        store: store.clone(),
        runs: store,
        blobs: Arc::new(dir.blobs()?),
        uploads: Arc::new(dir.uploads()?),
    })
}

async fn transfer(from: &TransferEnd, to: &TransferEnd) -> Result<Report> {
    let copied = copy(from, to).await?;
    compare(from, to).await.context("what was copied is not what was there")?;
    Ok(copied)
}

/// The store that daemons share; none of them may be running. Sessions are copied as this node,
/// because it has their workspaces.
async fn shared(options: &Options, url: &str) -> Result<Arc<postgres::Store>> {
    let store = postgres::Store::open(&storage::postgres_settings(options, url))?;
    let this = store.this().name;
    let others = store.list().await?;
    if let Some(other) = others.iter().find(|node| node.alive && node.name != this) {
        bail!("node {} uses the database: stop every daemon first", other.name);
    }
    Ok(Arc::new(store))
}

fn postgres_end(store: &Arc<postgres::Store>) -> TransferEnd {
    let store = Arc::clone(store);
    TransferEnd { store: store.clone(), runs: store.clone(), blobs: store.clone(), uploads: store }
}
