//! Whether the database that several daemons share can be used.

use quintet_kernel::port::Finding;
use quintet_stores::postgres::{Probe, probe};

use crate::options::Options;

pub(super) fn check(options: &Options) -> Option<Finding> {
    let url = options.store.as_ref()?;
    let threads = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let found = threads.map_err(anyhow::Error::from);
    let found = found.and_then(|threads| Ok(threads.block_on(probe(url))?));
    Some(match found {
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
            let mend = "start the server, or mend store.url; no password is shown here";
            Finding::error("store", format!("{error:#}"), mend)
        }
    })
}
