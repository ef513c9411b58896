//! Many tools: models are given an index and a tool that finds them, instead of every schema.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};

use quintet_kernel::port::{BoxFuture, Invocation, Tool, ToolContext, ToolOutput};
use quintet_kernel::tool::{Assessment, CallSubject, Outcome, Placement, Risk, ToolKind, ToolSpec};
use serde::Deserialize;
use serde_json::json;

use super::pool::Pool;
use crate::tool::nothing_will_run;
use crate::{input, show};

/// The name of the tool that finds others.
pub(super) const SEARCH: &str = "search_tools";
/// More tools than this are found by search.
pub(super) const LISTED_LIMIT: usize = 30;
/// How long the index may be.
const INDEX_LIMIT: usize = 6 * 1024;
/// How many tools one search gives.
const FOUND_LIMIT: usize = 10;

/// A tool that finds tools.
pub(super) struct SearchTools {
    spec: Arc<ToolSpec>,
    /// All that can be found.
    tools: Vec<Arc<ToolSpec>>,
    pool: Weak<Pool>,
}

#[derive(Debug, Deserialize)]
struct Input {
    query: String,
}

impl SearchTools {
    pub(super) fn new(tools: Vec<Arc<ToolSpec>>, pool: Weak<Pool>) -> Self {
        let description = format!(
            "Find tools by words of their names and descriptions. {} more tools can be called once \
             they were found; the search gives their descriptions and arguments. Their names: {}",
            tools.len(),
            index(&tools),
        );
        let schema = json!({
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "description": "Words, or the exact name of a tool",
                },
            },
            "required": ["query"],
            "additionalProperties": false,
        });
        let spec = ToolSpec {
            name: SEARCH.to_owned(),
            description,
            schema,
            kind: ToolKind::Read,
            placement: Placement::Daemon,
            strict: false,
        };
        Self { spec: Arc::new(spec), tools, pool }
    }

    fn search(&self, call: &Invocation) -> Result<ToolOutput, String> {
        let Input { query } = input::parse(&call.input)?;
        let found = find(&self.tools, &query);
        if found.is_empty() {
            return Ok(Outcome::success("no tool fits; try other words").into());
        }
        if let Some(pool) = self.pool.upgrade() {
            pool.list_for(&call.session, found.iter().map(|tool| tool.name.clone()));
        }
        let mut text = "These tools can be called now:".to_owned();
        for tool in found {
            let _infallible =
                write!(text, "\n\n{}\n{}\narguments: {}", tool.name, tool.description, tool.schema);
        }
        Ok(show::output(&text, "tools.txt"))
    }
}

/// The names of tools, as many as fit.
fn index(tools: &[Arc<ToolSpec>]) -> String {
    let mut text = String::new();
    for (n, tool) in tools.iter().enumerate() {
        if text.len() + tool.name.len() > INDEX_LIMIT {
            let _infallible = write!(text, " and {} more", tools.len() - n);
            break;
        }
        text.push_str(if n == 0 { "" } else { ", " });
        text.push_str(&tool.name);
    }
    text
}

/// The tools that fit best, the best first: an exact name, then more of the words, in the name rather
/// than in the description.
fn find<'a>(tools: &'a [Arc<ToolSpec>], query: &str) -> Vec<&'a Arc<ToolSpec>> {
    let query = query.to_lowercase();
    let words: Vec<&str> =
        query.split(|letter: char| !letter.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
    let score = |tool: &ToolSpec| {
        let (name, about) = (tool.name.to_lowercase(), tool.description.to_lowercase());
        let exact = if query.contains(&name) { 100 } else { 0 };
        let of_word =
            |word: &&str| 3 * usize::from(name.contains(word)) + usize::from(about.contains(word));
        exact + words.iter().map(of_word).sum::<usize>()
    };
    let mut scored: Vec<_> = tools.iter().map(|tool| (score(tool), tool)).collect();
    scored.retain(|(score, _)| *score > 0);
    scored.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.name.cmp(&two.1.name)));
    scored.into_iter().take(FOUND_LIMIT).map(|(_, tool)| tool).collect()
}

impl Tool for SearchTools {
    fn spec(&self) -> Arc<ToolSpec> {
        Arc::clone(&self.spec)
    }

    fn assess<'a>(&'a self, call: &'a Invocation) -> BoxFuture<'a, Assessment> {
        let assessment = match input::parse::<Input>(&call.input) {
            Ok(input) => Assessment {
                risk: Risk::Low,
                reasons: vec!["only reads descriptions of tools".to_owned()],
                reversible: true,
                preview: format!("find tools: {}", input.query),
                subject: CallSubject::default(),
                settled: None,
            },
            Err(why) => nothing_will_run(why),
        };
        Box::pin(std::future::ready(assessment))
    }

    fn run(&self, call: Invocation, _desk: ToolContext) -> BoxFuture<'_, ToolOutput> {
        let found = self.search(&call);
        let output = found.unwrap_or_else(|why| Outcome::failure(why).into());
        Box::pin(std::future::ready(output))
    }
}

#[cfg(test)]
mod tests;
