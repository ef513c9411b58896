//! `search`: the lines of the workspace's files that hold a text.

use std::path::Path;
use std::sync::Arc;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, Outcome, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use crate::blocking::{self, CancelFlag};
use crate::confined_fs::ConfinedRoot;
use crate::glob::Glob;
use crate::search_matches::{AllMatches, FileMatches};
use crate::walk::{Walk, WalkedFile};
use crate::{input, show};

const DEFAULT_LIMIT: usize = 50;
const MATCHES_LIMIT: usize = 1000;
const CONTEXT_LIMIT: usize = 20;
/// A file with a longer line is skipped, because it is generated.
const LINE_BYTES_LIMIT: usize = 64 * 1024 * 1024;

/// The tool.
pub(crate) struct Search {
    spec: Arc<ToolSpec>,
}

#[derive(Debug, Deserialize)]
struct Input {
    query: String,
    regex: Option<bool>,
    glob: Option<String>,
    context: Option<usize>,
    ignore_case: Option<bool>,
    max_results: Option<usize>,
}

/// A search that makes sense.
struct Wanted {
    input: Input,
    matcher: RegexMatcher,
    glob: Option<Glob>,
}

impl Wanted {
    fn of(call: &Invocation) -> Result<Self, String> {
        let input: Input = input::parse(&call.input)?;
        if input.query.is_empty() {
            return Err("invalid input: `query` is empty".to_owned());
        }
        let matcher = RegexMatcherBuilder::new()
            .fixed_strings(!input.regex.unwrap_or(false))
            .case_insensitive(input.ignore_case.unwrap_or(false))
            .line_terminator(Some(b'\n'))
            .crlf(true)
            .build(&input.query)
            .map_err(|error| format!("invalid input: `query`: {error}"))?;
        let glob = input.glob.as_deref().map(|glob| Glob::parse("glob", glob)).transpose()?;
        Ok(Self { input, matcher, glob })
    }

    fn searcher(&self) -> Searcher {
        let context = self.input.context.unwrap_or(0);
        SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(LINE_BYTES_LIMIT))
            .before_context(context)
            .after_context(context)
            .build()
    }

    fn run(&self, workspace: &Path, flag: &CancelFlag) -> Result<ToolOutput, String> {
        let tally = AllMatches::new(self.input.max_results.unwrap_or(DEFAULT_LIMIT));
        let root = ConfinedRoot::open(workspace).map_err(|error| error.to_string())?;
        let walk = Walk { workspace, within: None, skipped: &[], depth: None };
        walk.on_all_threads(flag, || {
            // Each has its own matcher, or they would wait for each other.
            let (mut searcher, matcher) = (self.searcher(), self.matcher.clone());
            let (root, tally) = (&root, &tally);
            move |found: WalkedFile| {
                let fits = self.glob.as_ref().is_none_or(|glob| glob.fits(&found.path));
                if !found.is_file || !fits {
                    return;
                }
                // What went away or cannot be read has nothing to show.
                if let Ok(file) = root.file(&found.path) {
                    let mut hits = FileMatches::new(&found.path, tally.room(&found.path), flag);
                    if searcher.search_file(&matcher, &file, &mut hits).is_ok() {
                        tally.add(hits);
                    }
                }
            }
        })?;
        Ok(show::output(&tally.text(), "matches.txt"))
    }
}

impl Search {
    pub(crate) fn new() -> Self {
        let description = "Search the text files of the workspace for a text or a regular \
                           expression, without what .gitignore leaves out. A match is \
                           `path:line:text`, a line around it `path-line-text`."
            .to_owned();
        let properties = json!({
            "query": { "type": "string", "description": "What to look for, within one line" },
            "regex": {
                "type": "boolean",
                "description": "Whether it is a regular expression (Rust syntax); default false",
            },
            "glob": {
                "type": "string",
                "description": "Only files that fit, such as `*.rs` or `src/**/*.ts`",
            },
            "context": {
                "type": "integer",
                "minimum": 0,
                "maximum": CONTEXT_LIMIT,
                "description": "Lines to show before and after each match; default 0",
            },
            "ignore_case": { "type": "boolean", "description": "Default false" },
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "maximum": MATCHES_LIMIT,
                "description": format!("At most this many matches; default {DEFAULT_LIMIT}"),
            },
        });
        Self { spec: super::spec(ToolKind::Read, "search", description, properties, &["query"]) }
    }
}

impl Tool for Search {
    fn spec(&self) -> Arc<ToolSpec> {
        self.spec.clone()
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let preview = Wanted::of(call);
        let preview = preview.map(|wanted| (format!("search {}", wanted.input.query), None));
        Box::pin(super::only_looks(call, preview))
    }

    fn run(&self, call: Invocation, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            match Wanted::of(&call) {
                Ok(wanted) => {
                    let search = move |flag: &CancelFlag| wanted.run(&call.workspace, flag);
                    blocking::run_cancellable(&context, search).await
                }
                Err(why) => Outcome::failure(why).into(),
            }
        })
    }
}
