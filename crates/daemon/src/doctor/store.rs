//! Checks the database that several daemons share, and its object store.

use anyhow::Result;
use quintet_kernel::port::Finding;
use quintet_stores::objects::{self, ObjectSettings};
use quintet_stores::postgres::{Probe, probe};

use crate::options::Options;

pub(super) fn check(options: &Options) -> impl Iterator<Item = Finding> {
    let database = options.store.as_ref().map(|url| database(options, url));
    let objects = options.objects.as_ref().map(objects);
    database.into_iter().chain(objects)
}

fn database(options: &Options, url: &str) -> Finding {
    match wait(probe(url)) {
        Ok(found) if found.is_too_new() => {
            let Probe { server, schema, .. } = found;
            let what = format!(
                "{server} has tables of version {schema}, which is newer than this program's"
            );
            Finding::error("store", what, "use the newer version of quintet that made them")
        }
        Ok(Probe { server, version, schema }) => {
            let tables = match schema {
                0 => "no tables yet".to_owned(),
                schema => format!("tables of version {schema}"),
            };
            let node = &options.node.address.name;
            Finding::ok(
                "store",
                format!("{server}, PostgreSQL {version}, {tables}; this is node {node}"),
            )
        }
        Err(error) => {
            let remedy = "start the server, or correct store.url";
            Finding::error("store", format!("{error:#}"), remedy)
        }
    }
}

/// Writes, reads and deletes an object.
fn objects(settings: &ObjectSettings) -> Finding {
    let ObjectSettings { location, limit, .. } = settings;
    match wait(objects::probe(settings)) {
        Ok(()) => Finding::ok(
            "store.blobs",
            format!("{location} can be written, for content of more than {} KiB", limit / 1024),
        ),
        Err(error) => {
            let remedy = "correct store.blobs and its keys; they need the rights to read, write, list and delete";
            Finding::error("store.blobs", format!("{error:#}"), remedy)
        }
    }
}

fn wait<T>(work: impl Future<Output = Result<T, quintet_stores::Error>>) -> Result<T> {
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(threads.block_on(work)?)
}
