//! One file per tool.

use quintet_kernel::tool::{Assessment, Risk};

pub(crate) mod read_file;
pub(crate) mod shell;
pub(crate) mod verify;

/// What a person is shown of a call that will not run because its arguments are wrong.
fn nothing_will_run(why: String) -> Assessment {
    Assessment {
        risk: Risk::Low,
        reasons: vec![format!("nothing will run: {why}")],
        reversible: true,
        preview: String::new(),
        idle: true,
    }
}
