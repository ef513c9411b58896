//! `repo_map`: the symbols of the workspace that matter most.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Outcome, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::blocking::{self, CancelFlag};
use crate::repository_map::{self, MapStyle, Mapper};
use crate::{confined_fs, input, show};

const DEFAULT_TOKENS: usize = 400;
const MAP_LIMIT: usize = 5000;
/// As much as the model reads of a result.
const TOKENS_LIMIT: usize = 8000;

/// The tool.
pub(crate) struct RepoMap {
    spec: Arc<ToolSpec>,
    mapper: Arc<Mapper>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    max_symbols: Option<usize>,
    path: Option<PathBuf>,
    max_tokens: Option<usize>,
}

impl Input {
    fn form(&self, within: PathBuf) -> MapStyle {
        MapStyle {
            within,
            max_symbols: self.max_symbols.unwrap_or(DEFAULT_TOKENS).clamp(1, MAP_LIMIT),
            max_tokens: self.max_tokens.unwrap_or(TOKENS_LIMIT).clamp(1, TOKENS_LIMIT),
            lines: true,
        }
    }

    fn preview(&self) -> String {
        match &self.path {
            Some(path) => format!("map {}", show::path(path)),
            None => "map all files".to_owned(),
        }
    }
}

impl RepoMap {
    pub(crate) fn new(mapper: Arc<Mapper>) -> Self {
        let description = "Show what the files of the workspace define (functions, types, \
                           constants and the like), those first that other files use most; \
                           without what .gitignore leaves out. Knows Rust, Python, TypeScript, \
                           JavaScript, Go, Java, C and C++."
            .to_owned();
        let properties = json!({
            "max_symbols": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAP_LIMIT,
                "description": format!("At most this many symbols; default {DEFAULT_TOKENS}"),
            },
            "path": {
                "type": "string",
                "description": "Only what this file or directory defines; default everything",
            },
            "max_tokens": {
                "type": "integer",
                "minimum": 1,
                "maximum": TOKENS_LIMIT,
                "description": format!("About how long the map may be; default {TOKENS_LIMIT}"),
            },
        });
        let spec = super::spec(ToolKind::Read, "repo_map", description, properties, &[]);
        Self { spec, mapper }
    }
}

impl Tool for RepoMap {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = input::parse::<Input>(&call.input);
        let preview = preview.map(|input| (input.preview(), input.path));
        Box::pin(super::only_looks(call, preview))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            match input::parse::<Input>(&call.input) {
                Ok(input) => {
                    let mapper = self.mapper.clone();
                    let look =
                        move |flag: &CancelFlag| draw(&mapper, &call.workspace, &input, flag);
                    blocking::run_cancellable(&context, look).await
                }
                Err(why) => Outcome::failure(why).into(),
            }
        })
    }
}

fn draw(
    mapper: &Mapper,
    workspace: &Path,
    input: &Input,
    flag: &CancelFlag,
) -> Result<ToolOutput, String> {
    let within = input.path.as_deref().map(|path| real(workspace, path)).transpose()?;
    let files = repository_map::files(workspace, flag)?;
    let text = mapper.draw(workspace, &files, &input.form(within.unwrap_or_default()), flag);
    if !text.is_empty() {
        return Ok(show::output(&text, "map.txt"));
    }
    let whole = "workspace".to_owned();
    let name = input.path.as_deref().map_or(whole, show::path);
    Ok(Outcome::success(format!("{name} contains no symbols")).into())
}

/// Where a file or directory really is, as seen from the workspace.
fn real(workspace: &Path, path: &Path) -> Result<PathBuf, String> {
    let real = match (confined_fs::open(workspace, path), path.parent(), path.file_name()) {
        (Ok(_), Some(parent), Some(name)) => {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            confined_fs::real_directory(workspace, parent).map(|parent| parent.join(name))
        }
        _ => confined_fs::real_directory(workspace, path),
    };
    real.map_err(|error| error.to_string())
}
