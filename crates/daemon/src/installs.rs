//! `quintet installs`: lists and revokes tokens of the computer-use protocol.

use std::io::Write as _;

use anyhow::{Result, bail};
use quintet_kernel::port::{self, Install, StorageError};
use quintet_stores::DataDir;

use crate::cli::{Flags, Installs};
use crate::options::{self, Options};
use crate::storage::Storage;

/// Lists or revokes installs. Works while a daemon runs, which applies the change from the next request on.
pub(crate) fn main(verb: Option<Installs>, flags: &Flags) -> Result<()> {
    match verb {
        None => list(flags),
        Some(Installs::List(flags)) => list(&flags),
        Some(Installs::Revoke { flags, id }) => revoke(&flags, &id),
    }
}

fn list(flags: &Flags) -> Result<()> {
    let options = options::read_closed(flags)?;
    let installs = match &options.store {
        Some(_) => on_server(&options, async |installs| installs.all().await)?,
        None => {
            let roll = DataDir::installs(&options.data_dir);
            roll.map(|roll| roll.all()).transpose()?.unwrap_or_default()
        }
    };
    let mut stdout = std::io::stdout().lock();
    for install in installs {
        writeln!(stdout, "{}", line(&install))?;
    }
    Ok(())
}

fn line(install: &Install) -> String {
    let Install { id, user, created, seen, system, .. } = install;
    // Text from a client must not contain terminal control characters.
    let system: String = system.iter().flat_map(|text| text.chars()).map(plain).collect();
    format!("{id}  {user}  registered {created}  last seen {seen}  {system}").trim_end().to_owned()
}

fn plain(character: char) -> char {
    if character.is_control() { '?' } else { character }
}

fn revoke(flags: &Flags, id: &str) -> Result<()> {
    let options = options::read_closed(flags)?;
    let revoked = match &options.store {
        Some(_) => on_server(&options, async |installs| installs.revoke(id).await)?,
        None => {
            let roll = DataDir::installs(&options.data_dir);
            roll.map(|roll| roll.revoke(id)).transpose()?.unwrap_or(false)
        }
    };
    if revoked {
        Ok(writeln!(std::io::stdout(), "{id} is revoked")?)
    } else {
        bail!("there is no install {id:?}; `quintet installs` lists them")
    }
}

/// Uses the list in a database that daemons share.
fn on_server<T>(
    options: &Options,
    work: impl AsyncFnOnce(&dyn port::Installs) -> Result<T, StorageError>,
) -> Result<T> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let storage = Storage::open_for_command(options)?;
    Ok(threads.block_on(work(&*storage.installs))?)
}
