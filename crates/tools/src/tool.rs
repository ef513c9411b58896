//! One file per tool.

use std::path::PathBuf;
use std::sync::Arc;

use quintet_kernel::port::Invocation;
use quintet_kernel::tool::{Assessment, CallSubject, Outcome, Placement, Risk, ToolKind, ToolSpec};
use serde_json::{Value, json};

use crate::subject::{self, FileAccess};

pub(crate) mod apply_patch;
pub(crate) mod diagram;
pub(crate) mod edit_file;
pub(crate) mod fetch_url;
pub(crate) mod find_files;
pub(crate) mod git_status;
pub(crate) mod list_dir;
pub(crate) mod look;
pub(crate) mod memory_get;
pub(crate) mod memory_search;
pub(crate) mod memory_write;
pub(crate) mod read_file;
pub(crate) mod repo_map;
pub(crate) mod repo_tree;
pub(crate) mod search;
pub(crate) mod shell;
pub(crate) mod update_plan;
pub(crate) mod verify;
pub(crate) mod web_search;
pub(crate) mod write_file;

/// A call that will not run, because its arguments are wrong.
pub(crate) fn nothing_will_run(why: String) -> Assessment {
    settled(Outcome::failure(why))
}

/// A call that is over before anybody need be asked.
fn settled(outcome: Outcome) -> Assessment {
    Assessment {
        risk: Risk::Low,
        reasons: vec!["nothing will run".to_owned()],
        reversible: true,
        preview: String::new(),
        subject: CallSubject::default(),
        settled: Some(outcome),
    }
}

/// What a person is shown of a call that only looks: at this folder and what is below it.
async fn only_looks(
    call: &Invocation,
    preview: Result<(String, Option<PathBuf>), String>,
) -> Assessment {
    let (preview, folder) = match preview {
        Ok(preview) => preview,
        Err(why) => return nothing_will_run(why),
    };
    let folder = folder.unwrap_or_else(|| PathBuf::from("."));
    Assessment {
        risk: Risk::Low,
        reasons: vec!["only reads the workspace".to_owned()],
        reversible: true,
        preview,
        subject: subject::looked_up(&call.workspace, FileAccess::Looks, vec![folder]).await,
        settled: None,
    }
}

/// A tool that takes these arguments and no others.
fn spec(
    kind: ToolKind,
    name: &str,
    description: String,
    properties: Value,
    required: &[&str],
) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description,
        schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
        kind,
        placement: Placement::Daemon,
        strict: false,
    })
}
